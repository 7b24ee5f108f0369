# SPDX-License-Identifier: BSD-3-Clause
# The command, and the programs that `tern NAME` executes. Apart from their main() they are libraries, so that unit
# tests reach them too.

# tern_text(SOURCES NAME FILE): adds to the list SOURCES a file as an array of characters, `const char NAME[]`: what
# --help prints, and pages that commands fill
macro(tern_text sources name file)
	set(text ${PROJECT_BINARY_DIR}/${name}.c)
	add_custom_command(OUTPUT ${text} VERBATIM
		COMMAND ${CMAKE_COMMAND} -DFROM=${PROJECT_SOURCE_DIR}/${file} -DTO=${text} -DNAME=${name}
			-P ${PROJECT_SOURCE_DIR}/cmake/Embed.cmake
		DEPENDS ${PROJECT_SOURCE_DIR}/${file} ${PROJECT_SOURCE_DIR}/cmake/Embed.cmake)
	list(APPEND ${sources} ${text})
endmacro()

# tern_program_add(NAME LIBRARY...): the program tern-NAME, beside the command here, in libexec/tern when installed
function(tern_program_add name)
	add_executable(tern_${name} ${PROJECT_SOURCE_DIR}/src/tools/main.c)
	set_target_properties(tern_${name} PROPERTIES OUTPUT_NAME tern-${name})
	target_compile_definitions(tern_${name} PRIVATE COMMAND=${name}_main)
	target_link_libraries(tern_${name} PRIVATE tern_flags tern_program ${ARGN})
	install(TARGETS tern_${name} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/tern)
	add_dependencies(tern_command tern_${name})
endfunction()

list(REMOVE_ITEM tool_sources src/tools/tern.c src/tools/main.c src/tools/link/main.c)
foreach(command run info trace sim)
	tern_text(tool_sources help_${command} src/tools/${command}/help.txt)
endforeach()
tern_text(tool_sources help_top src/tools/watch/top.txt)
tern_text(tool_sources help_why src/tools/watch/why.txt)
tern_text(tool_sources trace_page src/tools/trace/page.html)
add_library(tern_tools STATIC ${tool_sources})
target_link_libraries(tern_tools PRIVATE tern_flags tern_program PUBLIC tern_launch tern_internal m)
add_executable(tern_command src/tools/tern.c)
set_target_properties(tern_command PROPERTIES OUTPUT_NAME tern)
target_link_libraries(tern_command PRIVATE tern_flags tern_program tern_tools)
add_dependencies(tern_command tern_link)

tern_program_add(top tern_tools)
tern_program_add(info tern_tools)
tern_program_add(sim tern_tools)
