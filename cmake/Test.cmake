# SPDX-License-Identifier: BSD-3-Clause
# How a file becomes a test. One of its first five lines may say more about it:
#
#     /* ctest: RANKS 2 8 TIMEOUT 300 RUN_SERIAL LABELS slow */      (# ctest: ... in a script)
#
# RANKS n...   started by `tern run -n n`, once for each n; without it the program runs alone
# TIMEOUT s    seconds that it takes at most on an idle machine, instead of 120; it gets several times as long, because
#              a busy machine is no reason to fail, but not so long that one that hangs takes all the time of CI
# RUN_SERIAL   nothing beside it: it starts many processes that compute, or measures
# LOCK name    not beside another with the same lock: it waits more than it computes, so others may run
# MODES        again with TERN_DELIVERY=thread, and with TERN_DELIVERY=interrupt: NAME@thread and
#              NAME@interrupt, labelled by-thread and by-interrupt. Tests of the core have it without asking,
#              unless they say ONE_MODE because they choose for themselves
# LABELS l...  inline is set here, for tests that call what programs have inline: the noinline build has only those.
#              soak: only `make soak`. slow, perf: in `make test-all`, not in `make test` and not under sanitizers.
#              once: in the dev build alone (what it checks does not depend on the build)
#
# Exit status 0 is a pass, 77 a skip, anything else a failure.

set(test_timeout_factor 5)
if(TERN_SANITIZE OR CMAKE_CROSSCOMPILING)
	set(test_timeout_factor 10)
endif()

# What tests link: everything that has a library; and "lib/NAME.h" is what they share, tests/lib.
add_library(test_headers INTERFACE)
target_include_directories(test_headers INTERFACE ${PROJECT_SOURCE_DIR}/tests)
set(test_libraries test_headers tern_tools)
if(TERN_LAB)
	list(APPEND test_libraries tern_lab tern_cost_count)
endif()

# Reads `file`'s line into test_RANKS, test_TIMEOUT, test_RUN_SERIAL, test_LOCK, test_MODES and test_LABELS of the caller.
macro(tern_test_options file)
	file(STRINGS ${file} test_words LIMIT_COUNT 5 ENCODING UTF-8)
	list(FILTER test_words INCLUDE REGEX "ctest: ")
	string(REGEX REPLACE "^.*ctest: |[*]/" "" test_words "${test_words}")
	separate_arguments(test_words UNIX_COMMAND "${test_words}")
	cmake_parse_arguments(test "RUN_SERIAL;MODES;ONE_MODE" "TIMEOUT;LOCK" "RANKS;LABELS" ${test_words})
	if(test_UNPARSED_ARGUMENTS)
		message(FATAL_ERROR "${file}: a ctest line does not know: ${test_UNPARSED_ARGUMENTS}")
	endif()
	if(NOT test_TIMEOUT)
		set(test_TIMEOUT 120)
	endif()
	math(EXPR test_most "180 * ${test_timeout_factor}")
	if(test_TIMEOUT LESS test_most)
		math(EXPR test_TIMEOUT "${test_TIMEOUT} * ${test_timeout_factor}")
		if(test_TIMEOUT GREATER test_most)
			set(test_TIMEOUT ${test_most})
		endif()
	endif()
	# The line can change: look at it again when the file does.
	set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endmacro()

# Its time limit is its cost: long tests begin first, and none of them runs alone at the end.
function(tern_test_add name)
	add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
	set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${test_TIMEOUT}
		COST ${test_TIMEOUT}
		RUN_SERIAL ${test_RUN_SERIAL} LABELS "${test_LABELS}" RESOURCE_LOCK "${test_LOCK}")
	if(udp_lacks) # a script may play on a simulated machine
		set_property(TEST ${name} PROPERTY SKIP_REGULAR_EXPRESSION "this build has no simulated machine")
	endif()
	if(CMAKE_CROSSCOMPILING) # the emulator takes long to map much
		set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT TERN_HEAP=256M)
	endif()
endfunction()

# The same test once for each way of delivery, if it says MODES.
function(tern_test_add_modes name)
	tern_test_add(${name} ${ARGN})
	if(NOT test_MODES)
		return()
	endif()
	foreach(mode thread interrupt)
		tern_test_add(${name}@${mode} ${ARGN})
		set_property(TEST ${name}@${mode} APPEND PROPERTY LABELS by-${mode})
		set_property(TEST ${name}@${mode} APPEND PROPERTY ENVIRONMENT TERN_DELIVERY=${mode} TERN_SIGNAL=40)
	endforeach()
endfunction()

# A test program; `label` says where it stands.
function(tern_test_program file label)
	cmake_path(GET file STEM target)
	if(TARGET ${target}) # scripts start programs of tests by name
		message(FATAL_ERROR "${file}: another test is called ${target} too; give it another name")
	endif()
	add_executable(${target} ${PROJECT_SOURCE_DIR}/${file})
	target_compile_options(${target} PRIVATE -UNDEBUG)
	if(TERN_QUICK_UNITS AND label STREQUAL "unit")
		target_compile_options(${target} PRIVATE -O0 -g1)
	endif()
	target_link_libraries(${target} PRIVATE tern_flags tern_program ${test_libraries})

	tern_test_options(${PROJECT_SOURCE_DIR}/${file})
	list(APPEND test_LABELS ${label})
	add_dependencies(${label}_tests ${target})
	if(NOT file MATCHES "^lab/|^src/(base|boot|check|job|net|service|tools)/")
		list(APPEND test_LABELS inline)
		add_dependencies(inline_tests ${target})
	endif()
	cmake_path(REMOVE_EXTENSION file OUTPUT_VARIABLE name)
	if(file MATCHES "^src/(core|open)/" AND NOT test_ONE_MODE)
		set(test_MODES TRUE)
	endif()
	if(NOT test_RANKS)
		tern_test_add_modes(${name} ${target}) # through the emulator when there is one
	elseif(NOT CMAKE_CROSSCOMPILING)
		foreach(n ${test_RANKS})
			tern_test_add_modes(${name}-${n} tern_command run -n ${n} $<TARGET_FILE:${target}>)
		endforeach()
	endif()
endfunction()

# A test script. It is sourced, not run: TERN_BIN must reach it, but a variable that is
# exported would reach the programs it starts, and they warn of TERN_* names they do not know.
function(tern_test_script file)
	if(CMAKE_CROSSCOMPILING)
		return()
	endif()
	tern_test_options(${PROJECT_SOURCE_DIR}/${file})
	list(APPEND test_LABELS script)
	cmake_path(REMOVE_EXTENSION file OUTPUT_VARIABLE name)
	tern_test_add_modes(${name} bash -c "TERN_BIN=$1 && shift && . \"$0\""
		${PROJECT_SOURCE_DIR}/${file} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
	foreach(test ${name} ${name}@thread ${name}@interrupt)
		if(TEST ${test})
			set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT CC=${CMAKE_C_COMPILER} LC_ALL=C.UTF-8)
		endif()
	endforeach()
endfunction()
