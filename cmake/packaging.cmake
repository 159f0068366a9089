# `cmake --install` puts programs into bin/, manual pages and completions where man, bash, zsh and fish look; scripts,
# license, changelog and documents into share/plumbline. `cpack` makes a tar and a deb (launch/check_deb.sh proves it).
include(GNUInstallDirs)
install(FILES LICENSE README.md CHANGELOG.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DATADIR}/plumbline)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DATADIR}/plumbline)

set(CPACK_PACKAGE_NAME plumbline)
set(CPACK_PACKAGE_CONTACT "Plumbline developers <plumbline@users.noreply.github.com>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "benchmark of ResNet-50 and ArcFace training, with analysis of its logs")
set(CPACK_PACKAGE_DESCRIPTION
    "Trains ResNet-50 v1.5 and ArcFace face recognition natively, under MPI, on CPUs
and NVIDIA GPUs, times every step and checks what was computed. Its logs are
read by DLPerf's analyzers; plumbline analyzes them and those of frameworks,
compares runs with published numbers, guards against regressions, reports and
runs whole sweeps.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "gnuplot-nox, bash-completion")
if(PLUMB_HAS_CUDA)  # NVIDIA's libraries may lie where no package put them: recommended, and looked for at every start
  string(REGEX REPLACE "^([0-9]+)\\.([0-9]+).*" "\\1-\\2" cublas_version "${CUDAToolkit_VERSION}")
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libcudnn9-cuda-${CUDAToolkit_VERSION_MAJOR}, libcublas-${cublas_version}")
  if(PLUMB_HAS_NCCL)
    string(APPEND CPACK_DEBIAN_PACKAGE_RECOMMENDS ", libnccl2")
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
