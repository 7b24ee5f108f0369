# Writes to TO, as C, a number of all that the library below ROOT is made of: base/stamp.h says for
# what. Headers that a build leaves out count, too: builds with other options share a job's memory.
# LAYERS are files elsewhere: the numbers of layers, which of them the build has, and the sources of
# those from outside of the tree. Ranks of a job have the same.
file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/include/*.h ${ROOT}/src/*.c ${ROOT}/src/*.h)
list(FILTER files EXCLUDE REGEX "_test\\.c$|^src/tools/|^src/check/")
set(sums "")
foreach(file ${files})
	file(SHA256 ${ROOT}/${file} sum)
	string(APPEND sums "${file} ${sum}\n")
endforeach()
foreach(file ${LAYERS})
	file(SHA256 ${file} sum)
	get_filename_component(name ${file} NAME) # the same wherever the folder is
	string(APPEND sums "${name} ${sum}\n")
endforeach()
string(SHA256 sum "${sums}")
string(SUBSTRING ${sum} 0 8 sum)
file(CONFIGURE OUTPUT ${TO} CONTENT
"#include \"base/stamp.h\"\nconst uint32_t build_stamp = UINT32_C(0x${sum});\n")
