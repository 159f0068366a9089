# `cmake --install` puts programs into bin/, manual pages and completions where man, bash, zsh and fish look; scripts,
# license, changelog and documents into share/plumbline. `cpack` makes a tar of all and two packages, which install side by
# side or alone (tests/launch/check_deb.sh proves it): plumbline, and plumbline-bench with the programs that train.
include(GNUInstallDirs)
install(FILES LICENSE README.md CHANGELOG.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DATADIR}/plumbline COMPONENT plumbline)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DATADIR}/plumbline COMPONENT plumbline)
set(CPACK_COMPONENTS_ALL plumbline)
if(PLUMB_ENGINE)
  list(APPEND CPACK_COMPONENTS_ALL plumbline-bench)
endif()
foreach(component ${CPACK_COMPONENTS_ALL})
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${component} RENAME copyright COMPONENT ${component})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${component})
endforeach()

set(CPACK_PACKAGE_NAME plumbline)
set(CPACK_PACKAGE_CONTACT "Plumbline developers <plumbline@users.noreply.github.com>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "benchmark of ResNet-50 and ArcFace training, with analysis of its logs")
set(CPACK_COMPONENT_PLUMBLINE_DESCRIPTION
    "analysis of training benchmarks
 Analyzes logs of frameworks and of plumbline-bench, compares runs with
 published numbers, guards against regressions, reports, and runs whole sweeps.")
set(CPACK_COMPONENT_PLUMBLINE-BENCH_DESCRIPTION
    "benchmark of ResNet-50 and ArcFace training
 Trains ResNet-50 v1.5 and ArcFace face recognition natively, under MPI, on CPUs
 and NVIDIA GPUs, times every step and checks what was computed. Its logs are
 read by DLPerf's analyzers.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PLUMBLINE_PACKAGE_SUGGESTS "plumbline-bench, bash-completion")
set(CPACK_DEBIAN_PLUMBLINE-BENCH_PACKAGE_DEPENDS openmpi-bin)
set(CPACK_DEBIAN_PLUMBLINE-BENCH_PACKAGE_SUGGESTS "plumbline, bash-completion")
if(PLUMB_HAS_CUDA)  # NVIDIA's libraries may lie where no package put them: recommended, and looked for at every start
  string(REGEX REPLACE "^([0-9]+)\\.([0-9]+).*" "\\1-\\2" cublas_version "${CUDAToolkit_VERSION}")
  set(CPACK_DEBIAN_PLUMBLINE-BENCH_PACKAGE_RECOMMENDS "libcudnn9-cuda-${CUDAToolkit_VERSION_MAJOR}, libcublas-${cublas_version}")
  if(PLUMB_HAS_NCCL)
    string(APPEND CPACK_DEBIAN_PLUMBLINE-BENCH_PACKAGE_RECOMMENDS ", libnccl2")
  endif()
  foreach(library PLUMB_CUDNN_LIBRARY PLUMB_CUBLASLT_LIBRARY PLUMB_NCCL_LIBRARY_LIBRARY)
    if(${library})
      get_filename_component(folder ${${library}} DIRECTORY)
      list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${folder})
    endif()
  endforeach()
endif()
set(CPACK_STRIP_FILES ON)
include(CPack)
