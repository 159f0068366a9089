# plumb_embed(plumb_results published.csv kPublishedCsv): the bytes of a file as `extern const std::string_view
# kPublishedCsv` in namespace plumb, declared by whoever reads it. Changing the file builds it anew.
function(plumb_embed target file symbol)
  get_filename_component(path ${file} ABSOLUTE)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded/${symbol}.cpp)
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DFILE=${path} -DSYMBOL=${symbol} -DSOURCE=${source} -P ${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake
    DEPENDS ${path} ${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${source})
endfunction()
