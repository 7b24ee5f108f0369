# SPDX-License-Identifier: BSD-3-Clause
# The layers that are built, and their numbers. src/layers/layers.cmake has a line for each:
#
#     tern_layer(NAME HANDLERS n [USES layer...] [LANE bytes] [HEADERS name...])
#
# n handler numbers behind the program's are the layer's, USES are the layers whose headers it
# includes, LANE is what it keeps in each struct tern_lane, HEADERS are those of include/tern that
# are installed with it, or else the one that has its name. Numbers depend on the lines alone, so a
# build with fewer layers has the same ones. TERN_LAYERS names the layers of this build; a folder
# outside of the tree, which has a line in a layers.cmake of its own, is named by its path.
set(TERN_LAYERS "all" CACHE STRING "Layers to build, with those that they use: all, none, or names and folders")

file(STRINGS include/tern/ring.h layer_lanes REGEX "TERN_LANE_LAYERS = [0-9]+")
string(REGEX REPLACE ".*TERN_LANE_LAYERS = ([0-9]+).*" "\\1" layer_lanes "${layer_lanes}")
set(layer_names "")
set(layer_next 5) # numbers before this are the core's: enum core_handler
set(layer_lane 0)
function(tern_layer name)
	cmake_parse_arguments(layer "" "HANDLERS;LANE" "USES;HEADERS" ${ARGN})
	if(NOT layer_HEADERS)
		set(layer_HEADERS ${name})
	endif()
	math(EXPR next "${layer_next} + ${layer_HANDLERS}")
	math(EXPR lane "${layer_lane} + 0${layer_LANE}")
	if(next GREATER 256 OR lane GREATER layer_lanes) # TERN_HANDLER_SLOTS
		message(FATAL_ERROR "The layer ${name} needs more handlers or more of a lane than there are left.")
	endif()
	set(layer_${name}_handlers ${layer_HANDLERS} PARENT_SCOPE)
	set(layer_${name}_uses "${layer_USES}" PARENT_SCOPE)
	set(layer_${name}_headers ${layer_HEADERS} PARENT_SCOPE)
	set(layer_${name}_first ${layer_next} PARENT_SCOPE)
	set(layer_${name}_lane ${layer_lane} PARENT_SCOPE)
	set(layer_${name}_folder ${CMAKE_CURRENT_LIST_DIR}/${name} PARENT_SCOPE)
	set(layer_names ${layer_names} ${name} PARENT_SCOPE)
	set(layer_next ${next} PARENT_SCOPE)
	set(layer_lane ${lane} PARENT_SCOPE)
endfunction()
include(src/layers/layers.cmake)

# What is written on several layers is left out where one of them is.
if(NOT TERN_LAYERS STREQUAL "all")
	foreach(part TERN_LAB TERN_EXAMPLES TERN_TESTS)
		set(${part} OFF)
	endforeach()
endif()

# The chosen ones, with what they use.
macro(tern_layer_choose name)
	if(NOT DEFINED layer_${name}_first)
		message(FATAL_ERROR "TERN_LAYERS: there is no layer ${name}, but ${layer_names}")
	endif()
	if(NOT ${name} IN_LIST layers_built)
		list(APPEND layers_built ${name})
		foreach(used ${layer_${name}_uses})
			tern_layer_choose(${used})
		endforeach()
	endif()
endmacro()
set(layers_built "")
foreach(layer ${TERN_LAYERS})
	if(layer STREQUAL "all")
		set(chosen ${layer_names})
	elseif(layer STREQUAL "none")
		set(chosen "")
	elseif(IS_ABSOLUTE ${layer})
		set(before ${layer_names})
		include(${layer}/layers.cmake)
		set(chosen ${layer_names})
		list(REMOVE_ITEM chosen ${before})
	else()
		set(chosen ${layer})
	endif()
	foreach(name ${chosen})
		tern_layer_choose(${name})
	endforeach()
endforeach()

# Leaves in the list `files` the sources of the chosen layers, and adds the table of them. Sets
# layer_files: what the stamp of the build has of layers besides.
macro(tern_layer_sources files)
	set(layer_files ${PROJECT_BINARY_DIR}/generated/layers.h ${PROJECT_BINARY_DIR}/generated/layers.c)
	set(layer_enum "")
	set(layer_extern "")
	set(layer_functions "")
	set(layer_rows "")
	set(index 0)
	foreach(name ${layer_names})
		string(TOUPPER ${name} NAME)
		string(APPEND layer_enum "	LAYER_${NAME} = ${index},\n	${NAME}_HANDLERS = ${layer_${name}_first},\n"
			"	${NAME}_HANDLERS_END = ${layer_${name}_first} + ${layer_${name}_handlers},\n"
			"	${NAME}_LANE = ${layer_${name}_lane},\n")
		set(place NULL)
		if(${name} IN_LIST layers_built)
			string(APPEND layer_extern "extern const struct layer ${name}_layer;\n")
			set(place &${name}_layer)
			if(NOT layer_${name}_folder MATCHES "^${PROJECT_SOURCE_DIR}/src/layers/")
				file(GLOB outside CONFIGURE_DEPENDS ${layer_${name}_folder}/*.c)
				file(GLOB headers CONFIGURE_DEPENDS ${layer_${name}_folder}/*.h)
				list(APPEND ${files} ${outside})
				list(APPEND layer_files ${outside} ${headers})
			endif()
		else()
			list(FILTER ${files} EXCLUDE REGEX "^src/layers/${name}/")
			list(FILTER unit_tests EXCLUDE REGEX "^src/layers/${name}/")
		endif()
		string(APPEND layer_functions "	${place},\n")
		string(APPEND layer_rows
			"	{ \"${name}\", ${layer_${name}_first}, ${layer_${name}_handlers} },\n")
		math(EXPR index "${index} + 1")
	endforeach()
	file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/layers.h @ONLY CONTENT
"/* Made by cmake/Layers.cmake from src/layers/layers.cmake. */
#ifndef TERN_LAYERS_H
#define TERN_LAYERS_H

enum {
@layer_enum@};

#endif
")
	file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/layers.c @ONLY CONTENT
"/* Made by cmake/Layers.cmake from src/layers/layers.cmake. */
#include \"core/layers.h\"

@layer_extern@
const struct layer *const layer_table[LAYERS_MOST] = {
@layer_functions@};
")
	file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/layer_places.c @ONLY CONTENT
"/* Made by cmake/Layers.cmake from src/layers/layers.cmake. */
#include \"endpoint/endpoint.h\"

const struct layer_place layer_places[LAYERS_MOST + 1] = {
@layer_rows@	{ 0 }
};
")
	list(APPEND ${files} ${PROJECT_BINARY_DIR}/generated/layers.c
		${PROJECT_BINARY_DIR}/generated/layer_places.c)
endmacro()
