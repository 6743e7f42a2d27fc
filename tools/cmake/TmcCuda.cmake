# The CUDA toolkit, where there is one; nothing fails where there isn't. Sets
#
#   TMC_NVCC, TMC_CUDA_INCLUDE   the compiler, and the folder of cublasLt.h
#   TMC_NCCL_INCLUDE             the folder of nccl.h
#   TMC_NVCC_VERSION             "13.0.88"
#   TMC_CUDA_GENERATIONS         "75;80;...": all architectures that it may be built for
#   TMC_CUDA_NUMBERS             "86": those that it is built for
#   TMC_CUDA_KERNELS             "sm_86": the same, as tmc knows them
#   TMC_CUDA                     whether the cuda backend is built, in which case
#                                `tmc compile` compiles for it by default
#
# What is found here is written into tmc: nothing probes a machine later.
find_program(TMC_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda/bin
  PATH_SUFFIXES bin)
find_path(TMC_CUDA_INCLUDE cublasLt.h HINTS ENV CUDA_HOME
  PATHS /usr/local/cuda/include PATH_SUFFIXES include)
find_path(TMC_CUDNN_INCLUDE cudnn.h HINTS ${TMC_CUDA_INCLUDE} ENV CUDA_HOME
  PATH_SUFFIXES include)
# Graphs of cuDNN take its header-only frontend: PyPI's nvidia-cudnn-frontend, from
# tools/setup or beside the packages of this Python. Without it attention and convolutions
# have own kernels only.
set(packages)
if(Python3_EXECUTABLE)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c
    "import sysconfig; print(sysconfig.get_path('platlib'))"
    OUTPUT_VARIABLE packages OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
find_path(TMC_CUDNN_FRONTEND_INCLUDE cudnn_frontend.h HINTS ${TMC_CUDA_INCLUDE}
  ${PROJECT_BINARY_DIR}/cudnn-frontend/include ${packages}/include ENV CUDNN_FRONTEND_HOME PATH_SUFFIXES include)
# Libraries of ranks with cards are compiled where their steps are; here for a test.
find_path(TMC_NCCL_INCLUDE nccl.h HINTS ENV NCCL_HOME ${TMC_CUDA_INCLUDE}
  ${packages}/nvidia/nccl/include PATH_SUFFIXES include)
mark_as_advanced(TMC_NCCL_INCLUDE TMC_NVCC TMC_CUDA_INCLUDE TMC_CUDNN_INCLUDE TMC_CUDNN_FRONTEND_INCLUDE)
# "9.19.0", from lines as "#define CUDNN_MAJOR 9".
function(tmc_header_version variable header major minor patch)
  set(numbers)
  foreach(part ${major} ${minor} ${patch})
    file(STRINGS ${header} line REGEX "#define +${part} +[0-9]+")
    string(REGEX REPLACE ".* ([0-9]+).*" "\\1" number "${line}")
    list(APPEND numbers ${number})
  endforeach()
  list(JOIN numbers "." version)
  set(${variable} ${version} PARENT_SCOPE)
endfunction()
set(TMC_CUDNN_VERSION)
set(TMC_CUDNN_FRONTEND)
if(EXISTS ${TMC_CUDNN_INCLUDE}/cudnn_version.h)
  tmc_header_version(TMC_CUDNN_VERSION ${TMC_CUDNN_INCLUDE}/cudnn_version.h
    CUDNN_MAJOR CUDNN_MINOR CUDNN_PATCHLEVEL)
  if(EXISTS ${TMC_CUDNN_FRONTEND_INCLUDE}/cudnn_frontend_version.h)
    tmc_header_version(TMC_CUDNN_FRONTEND
      ${TMC_CUDNN_FRONTEND_INCLUDE}/cudnn_frontend_version.h
      CUDNN_FRONTEND_MAJOR_VERSION CUDNN_FRONTEND_MINOR_VERSION
      CUDNN_FRONTEND_PATCH_VERSION)
  endif()
endif()
# A step without convolutions doesn't ask for cuDNN where it runs.
set(TMC_CUDA_LIBRARIES "-Xlinker --as-needed -lcublasLt")
if(TMC_CUDNN_FRONTEND)
  string(APPEND TMC_CUDA_LIBRARIES " -lcudnn -lnvrtc") # the frontend calls NVRTC
endif()
# Older compilers than 12 don't know C++20.
set(version 0)
if(TMC_NVCC)
  execute_process(COMMAND ${TMC_NVCC} --version OUTPUT_VARIABLE version
    ERROR_QUIET)
  string(REGEX MATCH "V([0-9.]+)" _ "${version}")
  set(version "${CMAKE_MATCH_1}")
endif()
set(TMC_NVCC_VERSION "${version}")
if(TMC_NVCC AND TMC_CUDA_INCLUDE AND version VERSION_GREATER_EQUAL 12)
  option(TMC_CUDA "Build the cuda backend" ON)
else()
  message(STATUS "no CUDA toolkit: the cuda backend isn't built")
  set(TMC_CUDA OFF)
endif()

# Machine code for the cards of each generation that nvcc 13 knows (that of sm_100
# runs on sm_103, too, and that of sm_120 on sm_121). With sm_100 comes its PTX, which
# drivers compile for later cards. A build is for one generation by default, because
# all of them take minutes.
set(TMC_CUDA_GENERATIONS 75 80 86 89 90a 100 120)
set(TMC_CUDA_PTX 100)
set(TMC_CUDA_ARCHITECTURES "" CACHE STRING
  "The cuda backend's kernels: numbers of sm_XX, or all; empty: this machine's card, else 90a")
set(TMC_CUDA_NUMBERS 90a)
find_program(TMC_NVIDIA_SMI nvidia-smi)
mark_as_advanced(TMC_NVIDIA_SMI)
if(TMC_NVIDIA_SMI)
  execute_process(COMMAND ${TMC_NVIDIA_SMI} --query-gpu=compute_cap --format=csv,noheader
    OUTPUT_VARIABLE capability ERROR_QUIET)
  # Of several cards the first one. Hopper's own instructions have the letter.
  if(capability MATCHES "^([0-9]+)\\.([0-9]+)")
    set(TMC_CUDA_NUMBERS ${CMAKE_MATCH_1}${CMAKE_MATCH_2})
    if(TMC_CUDA_NUMBERS EQUAL 90)
      set(TMC_CUDA_NUMBERS 90a)
    endif()
  endif()
endif()
if(TMC_CUDA_ARCHITECTURES STREQUAL "all")
  set(TMC_CUDA_NUMBERS ${TMC_CUDA_GENERATIONS})
elseif(TMC_CUDA_ARCHITECTURES)
  set(TMC_CUDA_NUMBERS ${TMC_CUDA_ARCHITECTURES})
endif()
list(TRANSFORM TMC_CUDA_NUMBERS PREPEND sm_ OUTPUT_VARIABLE TMC_CUDA_KERNELS)
list(JOIN TMC_CUDA_KERNELS " " TMC_CUDA_KERNELS)
set(TMC_DEFAULT_TARGET cpu)
# The default target is the card that the kernels are built for, if tmc knows one.
if(TMC_CUDA)
  set(TMC_DEFAULT_TARGET cuda:sm_90)
  list(LENGTH TMC_CUDA_NUMBERS count)
  if(count EQUAL 1 AND TMC_CUDA_NUMBERS MATCHES "^(75|80|86|89)$")
    set(TMC_DEFAULT_TARGET cuda:sm_${TMC_CUDA_NUMBERS})
  endif()
endif()
