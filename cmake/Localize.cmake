# SPDX-License-Identifier: BSD-3-Clause
# Joins the members of ARCHIVE into one and makes every name local but tern_*, so that a
# program that links Tern statically may have a ring_open() of its own.
function(run)
	execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

cmake_path(GET ARCHIVE PARENT_PATH folder)
set(joined ${folder}/tern.o)
run(${LD} -r --whole-archive ${ARCHIVE} -o ${joined})
run(${OBJCOPY} --wildcard --keep-global-symbol=tern_* ${joined})
file(REMOVE ${ARCHIVE})
run(${AR} rcs ${ARCHIVE} ${joined})
file(REMOVE ${joined})
