# cmake -D SOURCE=… -D IN=build_info.h.in -D OUT=build_info.h -P commit.cmake: fills in the commit of the sources, with
# "-dirty" behind it if a tracked file differs from that commit. Runs in every build: a file may change between builds
# without CMake configuring anew. The variables in IN are VERSION, COMMIT, BUILD_TYPE and COMPILER.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
                OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT COMMIT)
  set(COMMIT unknown)
endif()
configure_file(${IN} ${OUT} @ONLY)  # writes only what differs
