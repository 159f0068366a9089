# The CUDA lane of this build: PLUMB_HAS_CUDA, PLUMB_HAS_NCCL, and targets for what was found. Libraries come from the
# toolkit, from the system, or from the nvidia-* wheels of a python3 on PATH.
#
#   plumb_cuda_headers   CUDA's own headers; there without a toolkit too if launch/install_deps.sh fetched them
#   plumb_cudnn_frontend the header library over cuDNN's graph API
#   plumb_cudnn, plumb_cublaslt, plumb_nccl_library   libraries with their headers
set(PLUMB_CUDA AUTO CACHE STRING "Build the CUDA device: AUTO (if all it needs is found), ON or OFF")
set(PLUMB_CUDA_ARCHITECTURES "80;90" CACHE STRING "GPU architectures of a release build")
option(PLUMB_ALL_GPUS "Build for every architecture that the toolkit knows" OFF)

# folders of the nvidia-* wheels, newest python first
set(plumb_wheels "")
find_program(PLUMB_PYTHON python3)
if(PLUMB_PYTHON)
  execute_process(COMMAND ${PLUMB_PYTHON} -c "import site,glob; print(';'.join(p for s in site.getsitepackages()+[site.getusersitepackages()] for p in glob.glob(s+'/nvidia/*')))"
                  OUTPUT_VARIABLE plumb_wheels OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()

include(CheckLanguage)
if(NOT PLUMB_CUDA STREQUAL OFF)
  if(NOT CMAKE_CUDA_COMPILER)
    find_program(PLUMB_NVCC nvcc PATHS /usr/local/cuda/bin ${plumb_wheels} PATH_SUFFIXES bin)
    if(PLUMB_NVCC)
      set(CMAKE_CUDA_COMPILER ${PLUMB_NVCC})
    endif()
  endif()
  check_language(CUDA)
endif()

set(plumb_cuda_missing "")
if(PLUMB_CUDA STREQUAL OFF)
  list(APPEND plumb_cuda_missing "PLUMB_CUDA=OFF")
elseif(NOT CMAKE_CUDA_COMPILER)
  list(APPEND plumb_cuda_missing nvcc)
else()
  find_package(CUDAToolkit QUIET)
endif()

find_path(PLUMB_CUDA_INCLUDE cuda_runtime_api.h
          HINTS ${CUDAToolkit_INCLUDE_DIRS} /usr/local/cuda/include ${PLUMB_FETCHED}/cuda/include ${plumb_wheels}
          PATH_SUFFIXES include)
find_path(PLUMB_CUDNN_FRONTEND_INCLUDE cudnn_frontend.h HINTS ${PLUMB_FETCHED}/cudnn_frontend/include ${plumb_wheels}
          PATH_SUFFIXES include)

# plumb_find_library(cudnn HEADER cudnn.h NAMES cudnn …): an imported target plumb_<name>, or an entry in the missing list.
function(plumb_find_library name)
  cmake_parse_arguments(ARG "" "HEADER" "NAMES" ${ARGN})
  string(TOUPPER ${name} upper)
  find_path(PLUMB_${upper}_INCLUDE ${ARG_HEADER} HINTS ${CUDAToolkit_INCLUDE_DIRS} /usr/local/cuda/include ${plumb_wheels}
            PATH_SUFFIXES include)
  find_library(PLUMB_${upper}_LIBRARY NAMES ${ARG_NAMES}
               HINTS ${CUDAToolkit_LIBRARY_DIR} /usr/local/cuda/lib64 ${plumb_wheels} PATH_SUFFIXES lib lib64)
  if(PLUMB_${upper}_INCLUDE AND PLUMB_${upper}_LIBRARY)
    add_library(plumb_${name} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(plumb_${name} PROPERTIES IMPORTED_LOCATION ${PLUMB_${upper}_LIBRARY}
                          INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${PLUMB_${upper}_INCLUDE})
  else()
    set(plumb_cuda_missing ${plumb_cuda_missing} ${name} PARENT_SCOPE)
  endif()
endfunction()
plumb_find_library(cudnn HEADER cudnn.h NAMES cudnn libcudnn.so.9)
plumb_find_library(cublaslt HEADER cublasLt.h NAMES cublasLt libcublasLt.so.13 libcublasLt.so.12)
if(NOT PLUMB_CUDNN_FRONTEND_INCLUDE)
  list(APPEND plumb_cuda_missing "the cuDNN frontend's headers")
endif()
if(TARGET plumb_cublaslt)  # which programs load by themselves
  get_filename_component(plumb_cublaslt_folder ${PLUMB_CUBLASLT_LIBRARY} DIRECTORY)
  list(APPEND CMAKE_BUILD_RPATH ${plumb_cublaslt_folder})
endif()

if(PLUMB_CUDA_INCLUDE)
  add_library(plumb_cuda_headers INTERFACE)
  target_include_directories(plumb_cuda_headers SYSTEM INTERFACE ${PLUMB_CUDA_INCLUDE})
endif()
if(PLUMB_CUDNN_FRONTEND_INCLUDE)
  add_library(plumb_cudnn_frontend INTERFACE)
  target_include_directories(plumb_cudnn_frontend SYSTEM INTERFACE ${PLUMB_CUDNN_FRONTEND_INCLUDE})
endif()

list(JOIN plumb_cuda_missing ", " PLUMB_CUDA_MISSING)
set(PLUMB_HAS_CUDA OFF)
if(NOT plumb_cuda_missing)
  set(PLUMB_HAS_CUDA ON)
elseif(PLUMB_CUDA STREQUAL ON)
  message(FATAL_ERROR "PLUMB_CUDA=ON, but these were not found: ${PLUMB_CUDA_MISSING}")
endif()
plumb_find_library(nccl_library HEADER nccl.h NAMES nccl libnccl.so.2)  # optional
set(PLUMB_HAS_NCCL OFF)
if(PLUMB_HAS_CUDA AND TARGET plumb_nccl_library)
  set(PLUMB_HAS_NCCL ON)
endif()

if(PLUMB_HAS_CUDA)
  if(PLUMB_ALL_GPUS)
    if(CUDAToolkit_VERSION VERSION_GREATER_EQUAL 13)
      set(PLUMB_CUDA_ARCHITECTURES 75 80 86 89 90 100 120)
    else()
      set(PLUMB_CUDA_ARCHITECTURES 70 75 80 86 89 90)
    endif()
  endif()
  set(CMAKE_CUDA_ARCHITECTURES ${PLUMB_CUDA_ARCHITECTURES})
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 doesn't know that nvcc 12 and later have it
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  if(PLUMB_CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${PLUMB_CCACHE})
  endif()
  message(STATUS "CUDA ${CUDAToolkit_VERSION} for sm_${PLUMB_CUDA_ARCHITECTURES}, NCCL ${PLUMB_HAS_NCCL}")
else()
  message(STATUS "no CUDA device in this build; missing: ${PLUMB_CUDA_MISSING}")
endif()
