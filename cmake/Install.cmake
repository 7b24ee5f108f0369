# SPDX-License-Identifier: BSD-3-Clause
# Libraries, headers, the command, documents, and the two ways to be found: pkg-config and CMake.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tern)
install(TARGETS tern tern_static EXPORT tern)
install(TARGETS tern_command)
install(TARGETS tern_link RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR})
install(PROGRAMS scripts/tern-machines DESTINATION ${CMAKE_INSTALL_BINDIR})
set(headers_left_out "")
foreach(name ${layer_names})
	if(NOT name IN_LIST layers_built)
		list(APPEND headers_left_out ${layer_${name}_headers})
	endif()
endforeach()
list(JOIN headers_left_out "|" headers_left_out)
install(DIRECTORY include/tern DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h
	REGEX "/(${headers_left_out})\\.h$" EXCLUDE)
if(NOT headers_left_out) # C++ has one for all layers
	install(DIRECTORY include/tern DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.hpp)
endif()

# Relative to the file itself, so that an installed tree can be moved.
file(RELATIVE_PATH TERN_PC_PREFIX
	${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" TERN_PC_PREFIX "${TERN_PC_PREFIX}")
set(TERN_PC_PRIVATE "")
if(udp_library)
	set(TERN_PC_PRIVATE " -l${udp_library}")
endif()
# A program that is linked finds the library again, wherever it was installed: what the loader does not search by
# itself (and /usr/local/lib only after ldconfig) is written into the program.
set(TERN_PC_RPATH "")
if(NOT CMAKE_INSTALL_FULL_LIBDIR IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
	set(TERN_PC_RPATH "-Wl,-rpath,\${libdir} ")
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

file(GLOB example_sources CONFIGURE_DEPENDS examples/*.c examples/*.cpp)
install(FILES ${example_sources} examples/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(DIRECTORY examples/runtime examples/mpi DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
file(GLOB drawings CONFIGURE_DEPENDS docs/*.svg docs/*.png)
install(FILES ${drawings} DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)

# Documents keep their places to each other. What they link to besides lies elsewhere in a prefix than in the tree.
file(GLOB documents CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} README.md docs/*.md)
foreach(document ${documents})
	cmake_path(GET document PARENT_PATH folder)
	set(from ${CMAKE_INSTALL_FULL_DOCDIR}/${folder})
	file(RELATIVE_PATH man ${from} ${CMAKE_INSTALL_FULL_MANDIR})
	file(RELATIVE_PATH include ${from} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
	file(RELATIVE_PATH python ${from} ${CMAKE_INSTALL_FULL_DATADIR}/tern/python)
	set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${document})
	file(READ ${document} text)
	string(REGEX REPLACE "\\]\\((\\.\\./)?man/([^)]*\\.([0-9]))\\)" "](${man}/man\\3/\\2)" text "${text}")
	string(REGEX REPLACE "\\]\\((\\.\\./)?include/" "](${include}/" text "${text}")
	string(REGEX REPLACE "\\]\\((\\.\\./)?bindings/python/" "](${python}/" text "${text}")
	# Folders of the source tree are not installed: their names stay.
	string(REGEX REPLACE "\\[([^]]*)\\]\\((\\.\\./)?(src|tests|models|lab|apps|scripts)/[^)]*\\)" "\\1" text "${text}")
	file(WRITE ${PROJECT_BINARY_DIR}/installed/${document} "${text}")
	install(FILES ${PROJECT_BINARY_DIR}/installed/${document} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder})
endforeach()
install(DIRECTORY bindings/python DESTINATION ${CMAKE_INSTALL_DATADIR}/tern FILES_MATCHING PATTERN *.py PATTERN README.md
	PATTERN __pycache__ EXCLUDE)
foreach(command tern tern-machines) # bash looks there for a file of the command's name
	install(FILES scripts/completion.bash RENAME ${command}
		DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
endforeach()

# For scripts/installed.sh, which sources it.
set(paths "")
foreach(path prefix=${CMAKE_INSTALL_PREFIX} bin=${CMAKE_INSTALL_FULL_BINDIR} include=${CMAKE_INSTALL_FULL_INCLUDEDIR}
		lib=${CMAKE_INSTALL_FULL_LIBDIR} pkgconfig=${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig doc=${CMAKE_INSTALL_FULL_DOCDIR})
	string(REPLACE "=" "='" path "${path}")
	string(APPEND paths "${path}'\n")
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/install-paths "${paths}")
