include(GNUInstallDirs)

# plumb_embed(plumb_results published.csv kPublishedCsv): the text of a file as `extern const std::string_view
# kPublishedCsv` in namespace plumb, declared by whoever reads it; further files follow it. Changing one builds it anew.
function(plumb_embed target file symbol)
  set(text "")
  foreach(name ${file} ${ARGN})
    get_filename_component(path ${name} ABSOLUTE)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    file(READ ${path} part)
    string(APPEND text "${part}")
  endforeach()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded/${symbol}.cpp)
  file(WRITE ${source}.new "#include <string_view>
namespace plumb {
extern const std::string_view ${symbol};
const std::string_view ${symbol} = R\"embedded(${text})embedded\";
}
")
  configure_file(${source}.new ${source} COPYONLY)  # writes only what differs
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
