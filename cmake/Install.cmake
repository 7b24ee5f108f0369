# SPDX-License-Identifier: BSD-3-Clause
# Libraries, headers, the command, man pages, and the two ways to be found: pkg-config and CMake.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tern)
install(TARGETS tern tern_static EXPORT tern)
install(TARGETS tern_command)
install(DIRECTORY include/tern DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)

# Relative to the file itself, so that an installed tree can be moved.
file(RELATIVE_PATH TERN_PC_PREFIX
	${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" TERN_PC_PREFIX "${TERN_PC_PREFIX}")
set(TERN_PC_PRIVATE "")
if(udp_library)
	set(TERN_PC_PRIVATE " -l${udp_library}")
endif()
configure_file(cmake/tern.pc.in tern.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tern.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(EXPORT tern NAMESPACE tern:: FILE tern-targets.cmake DESTINATION ${package_dir})
configure_package_config_file(cmake/tern-config.cmake.in tern-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(tern-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tern-config.cmake ${PROJECT_BINARY_DIR}/tern-config-version.cmake
	DESTINATION ${package_dir})

foreach(section 1 3 7)
	file(GLOB pages CONFIGURE_DEPENDS man/*.${section})
	install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
