# SPDX-License-Identifier: BSD-3-Clause
# The network over UDP protects its datagrams with libsodium, and is left out without it.
find_path(SODIUM_INCLUDE sodium.h)
find_library(SODIUM_LIBRARY sodium)

set(udp_lacks "")
if(NOT TERN_SODIUM)
	set(udp_lacks "libsodium (left out by -DTERN_SODIUM=OFF)")
elseif(NOT SODIUM_INCLUDE OR NOT SODIUM_LIBRARY)
	set(udp_lacks "libsodium (package libsodium-dev), which protects datagrams")
endif()

# Leaves in the caller's list `files` those that can be compiled.
macro(tern_udp_sources files)
	if(udp_lacks)
		list(FILTER ${files} EXCLUDE REGEX "^src/(net/(udp|guard|sim/open)|service/stack)")
		list(FILTER unit_tests EXCLUDE REGEX "^src/(net/(udp|guard|sim/sim_)|service/stack)")
		list(FILTER ${files} EXCLUDE REGEX "^src/boot/link/seal.c$")
		message(STATUS "Without the network udp: it needs ${udp_lacks}")
	else()
		list(REMOVE_ITEM ${files} src/boot/link/seal_lacking.c)
	endif()
endmacro()

function(tern_udp_link target)
	if(udp_lacks)
		target_compile_definitions(${target} PRIVATE UDP_LACKS="${udp_lacks}")
	else()
		target_include_directories(${target} PRIVATE ${SODIUM_INCLUDE})
	endif()
endfunction()

# For whatever is linked with Tern's objects.
set(udp_library "")
if(NOT udp_lacks)
	set(udp_library sodium)
endif()
