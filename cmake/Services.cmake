# SPDX-License-Identifier: BSD-3-Clause
# The table of services, made from the sources that define one: see src/service/service.h. Appends
# it to the caller's list `files`.
macro(tern_service_sources files)
	set(services "")
	foreach(file ${${files}})
		if(file MATCHES "^src/(service|flow)/")
			set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
			file(STRINGS ${file} lines REGEX "^const struct service [a-z_]+ =")
			foreach(line ${lines})
				string(REGEX REPLACE "^const struct service ([a-z_]+) =.*" "\\1" name "${line}")
				list(APPEND services ${name})
			endforeach()
		endif()
	endforeach()
	list(JOIN services ", " service_names)
	list(JOIN services ", &" service_places)
	file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/services.c @ONLY CONTENT
"/* Made by cmake/Services.cmake. */
#include \"service/service.h\"

extern const struct service @service_names@;
service_list service_all = { &@service_places@, NULL };
")
	list(APPEND ${files} ${PROJECT_BINARY_DIR}/services.c)
endmacro()
