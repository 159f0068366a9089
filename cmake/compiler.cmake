# Flags of every target, and how a folder becomes a library.
find_program(PLUMB_CCACHE ccache)
if(PLUMB_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PLUMB_CCACHE})
endif()

# -Og compiles in half the time of -O2. Sources with a hot loop set their own level, by name.
add_compile_options($<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-Og>)

add_library(plumb_flags INTERFACE)
target_include_directories(plumb_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(plumb_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wno-missing-field-initializers;-Wno-restrict>"
                       "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${PLUMB_WARNINGS_AS_ERRORS}>>:-Werror>"
                       # Collecting its garbage is a seventh of g++'s time; groups need 1 GB without.
                       $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1000000>)
target_link_options(plumb_flags INTERFACE LINKER:--build-id)  # ranks compare it
if(PLUMB_SANITIZERS)
  target_compile_options(plumb_flags INTERFACE -fsanitize=${PLUMB_SANITIZERS} -fno-omit-frame-pointer
                         -fno-sanitize-recover=undefined)
  target_link_options(plumb_flags INTERFACE -fsanitize=${PLUMB_SANITIZERS})
endif()

# plumb_library(models SOURCES … LINKS …): one target per folder, plumb_<folder>, sources in that folder.
function(plumb_library folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  add_library(plumb_${folder} STATIC ${ARG_SOURCES})
  target_link_libraries(plumb_${folder} PUBLIC plumb_flags ${ARG_LINKS} PRIVATE ${ARG_PRIVATE_LINKS})
endfunction()

# A dozen sources of a target are compiled as one, in a third of the time: names in anonymous namespaces differ within a
# target. Sources with options of their own, or with SKIP_UNITY_BUILD_INCLUSION, stay alone.
option(PLUMB_TOGETHER "Compile a dozen sources as one" ON)
set(CMAKE_UNITY_BUILD ${PLUMB_TOGETHER})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)

# plumb_one_source(kernels kernels.cu depthwise.cu dropout.cu …): the same for sources of CUDA or with options of their own,
# before they go to a target. Sets `kernels` to kernels.cu, which includes them all; without PLUMB_TOGETHER to themselves.
function(plumb_one_source variable name)
  set(${variable} ${ARGN} PARENT_SCOPE)
  if(PLUMB_TOGETHER)
    set(includes "")
    foreach(source ${ARGN})
      get_filename_component(path ${source} ABSOLUTE)
      string(APPEND includes "#include \"${path}\"\n")
    endforeach()
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name} CONTENT "${includes}" @ONLY)
    set(${variable} ${CMAKE_CURRENT_BINARY_DIR}/${name} PARENT_SCOPE)
  endif()
endfunction()
