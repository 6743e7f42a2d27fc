# How other projects find tmc: a package of CMake, tmc.pc, man pages and a package of Debian.
include(CMakePackageConfigHelpers)
set(TMC_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tmc)

# tmc_configure_package(FILE INSTALL_PREFIX PLACE PROGRAM INCLUDE): paths are relative to FILE.
function(tmc_configure_package file prefix place TMC_PACKAGE_PROGRAM TMC_PACKAGE_INCLUDE)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/tools/cmake/package/tmcConfig.cmake.in ${file}
    INSTALL_PREFIX ${prefix} INSTALL_DESTINATION ${place}
    PATH_VARS TMC_PACKAGE_PROGRAM TMC_PACKAGE_INCLUDE)
endfunction()

set(installed ${PROJECT_BINARY_DIR}/package)
tmc_configure_package(${installed}/tmcConfig.cmake ${CMAKE_INSTALL_PREFIX} ${TMC_CONFIG_DIR}
  ${CMAKE_INSTALL_BINDIR}/tmc ${CMAKE_INSTALL_INCLUDEDIR}/tmc/runtime)
write_basic_package_version_file(${installed}/tmcConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${installed}/tmcConfig.cmake ${installed}/tmcConfigVersion.cmake
  tools/cmake/package/tmcAddStep.cmake DESTINATION ${TMC_CONFIG_DIR})
# The same of the build folder: -Dtmc_DIR=BUILD.
tmc_configure_package(${PROJECT_BINARY_DIR}/tmcConfig.cmake ${PROJECT_BINARY_DIR} ${PROJECT_BINARY_DIR}
  bin/tmc ${PROJECT_SOURCE_DIR}/runtime)
file(COPY ${installed}/tmcConfigVersion.cmake tools/cmake/package/tmcAddStep.cmake
  DESTINATION ${PROJECT_BINARY_DIR})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS tools/cmake/package/tmcAddStep.cmake)

# It may be moved with what lies beside it.
file(RELATIVE_PATH TMC_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" TMC_PC_PREFIX "${TMC_PC_PREFIX}")
configure_file(tools/cmake/package/tmc.pc.in ${installed}/tmc.pc @ONLY)
install(FILES ${installed}/tmc.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Man pages of the command's own texts. Where help2man isn't there, nothing is installed.
find_program(TMC_HELP2MAN help2man)
mark_as_advanced(TMC_HELP2MAN)
if(TMC_HELP2MAN)
  set(man ${PROJECT_BINARY_DIR}/man)
  add_custom_command(OUTPUT ${man}/tmc.1
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/man.py $<TARGET_FILE:tmc> ${TMC_HELP2MAN} ${man}
    DEPENDS tmc tools/man.py VERBATIM)
  add_custom_target(man ALL DEPENDS ${man}/tmc.1)
  # The wheel is installed without this component.
  install(DIRECTORY ${man}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT pages OPTIONAL
    FILES_MATCHING PATTERN "*.1")
endif()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT pages)

# `cpack -G DEB` in the build folder: what `cmake --install` installs, under /usr, with the
# libraries that its programs need. Steps are compiled by g++.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tmc)
set(CPACK_PACKAGE_VENDOR tmc)
set(CPACK_PACKAGE_CONTACT "maintainers of tmc <tmc@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "training steps that fit a memory budget")
set(CPACK_PACKAGE_DESCRIPTION
  "tmc compiles the forward graph of a model into a training step that fits a byte budget.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "g++")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
include(CPack)
