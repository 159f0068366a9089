# `cmake --install` puts programs into bin/; scripts, licence and documents into share/plumbline. `cpack` makes a tar and
# a deb.
include(GNUInstallDirs)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/plumbline)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DATADIR}/plumbline)

set(CPACK_PACKAGE_NAME plumbline)
set(CPACK_PACKAGE_CONTACT "Plumbline developers")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)
set(CPACK_STRIP_FILES ON)
include(CPack)
