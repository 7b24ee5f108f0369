# SPDX-License-Identifier: BSD-3-Clause
# What this build could have and has not, for scripts/left_out.sh: a line for each, the Debian package and what it adds.
# What an option has switched off is nobody's surprise.
set(left_out "")

function(tern_left_out lacks package what)
	if(lacks MATCHES "package ${package}")
		set(left_out "${left_out}${package}\t${what}\n" PARENT_SCOPE)
	endif()
endfunction()

if(FABRIC_INCLUDE)
	tern_left_out("${udp_lacks}" libsodium-dev "the networks UDP and libfabric")
else()
	tern_left_out("${udp_lacks}" libsodium-dev "the network UDP")
endif()
tern_left_out("${ofi_lacks}" libfabric-dev "the network libfabric")
if(NOT PMIX_HEADER_DIR AND NOT CMAKE_CROSSCOMPILING AND (TERN_PMIX OR NOT DEFINED TERN_PMIX))
	tern_left_out("package libpmix-dev" libpmix-dev "PMIx for mpirun and srun")
endif()
tern_left_out("${cost_lacks}" libdw-dev "tern cost")
tern_left_out("${cost_lacks}" libcapstone-dev "tern cost")
file(WRITE ${PROJECT_BINARY_DIR}/left-out "${left_out}")
