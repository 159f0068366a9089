include(GNUInstallDirs)

# plumb_embed(plumb_results published.csv kPublishedCsv): the bytes of a file as `extern const std::string_view
# kPublishedCsv` in namespace plumb, declared by whoever reads it; further files follow it. Changing one builds it anew.
function(plumb_embed target file symbol)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  get_filename_component(path ${file} ABSOLUTE)
  list(APPEND path ${ARGN})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded/${symbol}.cpp)
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${path}" -DSYMBOL=${symbol} -DSOURCE=${source} -P ${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake
    DEPENDS ${path} ${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${source})
endfunction()

# plumb_documents(program page): what a program writes when it is built: manual pages, completions, schemas; installed.
# `page`: one of them.
function(plumb_documents program page)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/documents)
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tools)
  add_custom_command(OUTPUT ${folder}/${page} COMMAND ${program} ${folder} DEPENDS ${program} VERBATIM)
  add_custom_target(${program}_written ALL DEPENDS ${folder}/${page})
  install(DIRECTORY ${folder}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(DIRECTORY ${folder}/completions/ DESTINATION ${CMAKE_INSTALL_DATADIR})
endfunction()
