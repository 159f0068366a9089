# plumb_install_starters(bench_resnet50 …): installs programs that want CUDA's libraries into lib/plumbline/libexec, and as
# bin/NAME a link to launch/start_program.sh, which finds the libraries or names the missing one.
include(GNUInstallDirs)
function(plumb_install_starters)
  set(home ${CMAKE_INSTALL_LIBDIR}/plumbline)
  install(TARGETS ${ARGN} DESTINATION ${home}/libexec)
  set(programs "")
  foreach(name ${ARGN})
    install(PROGRAMS ${PROJECT_SOURCE_DIR}/launch/start_program.sh DESTINATION ${home}/bin RENAME ${name})
    install(CODE "file(MAKE_DIRECTORY \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
file(RELATIVE_PATH target /${CMAKE_INSTALL_BINDIR} /${home}/bin/${name})
file(CREATE_LINK \"\${target}\" \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/${name}\" SYMBOLIC)")
    string(APPEND programs " '$<TARGET_FILE:${name}>'")
  endforeach()
  install(CODE "file(MAKE_DIRECTORY \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${home}/lib\")
execute_process(
  COMMAND bash -c \". '${PROJECT_SOURCE_DIR}/launch/cuda_libraries.sh'; list_cuda_libraries${programs}\"
  OUTPUT_FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${home}/lib/cuda_libraries.txt\" COMMAND_ERROR_IS_FATAL ANY)")
endfunction()
