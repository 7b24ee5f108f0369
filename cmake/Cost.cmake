# SPDX-License-Identifier: BSD-3-Clause
# `tern cost` needs libdw and Capstone, and is written for x86-64. Without one of them the command
# says which; nothing else of Tern depends on them.

find_path(DW_INCLUDE elfutils/libdwfl.h)
find_library(DW_LIBRARY dw)
find_path(CAPSTONE_INCLUDE capstone/capstone.h)
find_library(CAPSTONE_LIBRARY capstone)
find_program(AWK NAMES awk mawk gawk)

set(cost_lacks "")
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
	set(cost_lacks "a processor it can step through: it is written for x86-64")
elseif(NOT DW_INCLUDE OR NOT DW_LIBRARY)
	set(cost_lacks "libdw (package libdw-dev), which reads the lines that instructions come from")
elseif(NOT CAPSTONE_INCLUDE OR NOT CAPSTONE_LIBRARY)
	set(cost_lacks "Capstone (package libcapstone-dev), which decodes instructions")
elseif(NOT AWK)
	set(cost_lacks "awk (package mawk), which collects what the sources say about themselves")
endif()

if(cost_lacks)
	list(FILTER unit_tests EXCLUDE REGEX "^lab/cost/")
endif()

# Adds the table of annotations to the caller's list `files`.
macro(tern_cost_table files)
	file(GLOB_RECURSE annotated CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include/*.h
		${PROJECT_SOURCE_DIR}/src/*.[ch] ${PROJECT_SOURCE_DIR}/lab/cost/*.[ch])
	set(cost_table ${PROJECT_BINARY_DIR}/cost_marks.c)
	list(TRANSFORM annotated PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE depends)
	add_custom_command(OUTPUT ${cost_table} VERBATIM
		COMMAND ${AWK} -f cmake/cost.awk lab/cost/marks.txt ${annotated} > ${cost_table}
		DEPENDS ${depends} ${PROJECT_SOURCE_DIR}/lab/cost/marks.txt ${PROJECT_SOURCE_DIR}/cmake/cost.awk
		WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
		COMMENT "Collecting annotations for tern cost")
	list(APPEND ${files} ${cost_table})
endmacro()

function(tern_cost_link target)
	if(cost_lacks)
		target_compile_definitions(${target} PRIVATE COST_LACKS="${cost_lacks}")
	else()
		target_include_directories(${target} PRIVATE ${DW_INCLUDE} ${CAPSTONE_INCLUDE})
		target_link_libraries(${target} PUBLIC ${DW_LIBRARY} ${CAPSTONE_LIBRARY})
	endif()
endfunction()
