# SPDX-License-Identifier: BSD-3-Clause
# How Tern's own code is compiled: tern_flags for all of it, tern_program for what is not the library.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_CXX_STANDARD 17) # of examples alone; the library is C
set(CMAKE_C_EXTENSIONS ON) # gnu11: the library knows Linux; the public header needs only c11

add_library(tern_flags INTERFACE)
target_compile_definitions(tern_flags INTERFACE _GNU_SOURCE)
target_compile_options(tern_flags INTERFACE
	-Wall -Wextra -Wshadow
	$<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
	$<$<COMPILE_LANGUAGE:C>:-Wold-style-definition> -Wpointer-arith -Wvla -Wundef -Wwrite-strings -Wimplicit-fallthrough -Wformat=2 -Wno-format-nonliteral)
# A row of a table says what is special in it, and C makes the rest 0; gcc does not warn in designated rows.
if(CMAKE_C_COMPILER_ID MATCHES Clang)
	target_compile_options(tern_flags INTERFACE -Wno-missing-field-initializers)
endif()
if(TERN_WERROR)
	target_compile_options(tern_flags INTERFACE -Werror)
endif()

if(TERN_SANITIZE)
	target_compile_options(tern_flags INTERFACE
		-fsanitize=${TERN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
	target_link_options(tern_flags INTERFACE -fsanitize=${TERN_SANITIZE})
	if(TERN_SANITIZE MATCHES thread AND CMAKE_C_COMPILER_ID STREQUAL GNU)
		# gcc says that it does not model fences; clang does not either, silently.
		target_compile_options(tern_flags INTERFACE -Wno-tsan)
	endif()
endif()

add_library(tern_program INTERFACE)
if(TERN_NO_INLINE)
	target_compile_definitions(tern_program INTERFACE TERN_NO_INLINE)
endif()

include(CheckCCompilerFlag)

# tern_compile_with(FILE FLAG): the one file, where the compiler knows the flag
function(tern_compile_with file flag)
	string(MAKE_C_IDENTIFIER "TERN_HAS_${flag}" has)
	check_c_compiler_flag(${flag} ${has})
	if(${has})
		set_property(SOURCE ${file} APPEND PROPERTY COMPILE_OPTIONS ${flag})
	endif()
endfunction()
