# SPDX-License-Identifier: BSD-3-Clause
# The network over libfabric needs its headers now and its library when it is used; and libsodium, as UDP does.
find_path(FABRIC_INCLUDE rdma/fabric.h)

set(ofi_lacks "")
if(NOT TERN_FABRIC)
	set(ofi_lacks "libfabric (left out by -DTERN_FABRIC=OFF)")
elseif(NOT FABRIC_INCLUDE)
	set(ofi_lacks "libfabric (package libfabric-dev)")
elseif(udp_lacks)
	set(ofi_lacks "${udp_lacks}")
endif()

# Leaves in the caller's list `files` those that can be compiled.
macro(tern_ofi_sources files)
	if(ofi_lacks)
		list(FILTER ${files} EXCLUDE REGEX "^src/net/ofi/")
		list(FILTER unit_tests EXCLUDE REGEX "^src/net/ofi/")
		message(STATUS "Without the network ofi: it needs ${ofi_lacks}")
	else()
		list(REMOVE_ITEM ${files} src/open/lacking.c)
	endif()
endmacro()

function(tern_ofi_link target)
	if(ofi_lacks)
		target_compile_definitions(${target} PRIVATE OFI_LACKS="${ofi_lacks}")
	else()
		target_include_directories(${target} SYSTEM PRIVATE ${FABRIC_INCLUDE})
	endif()
endfunction()
