# The CUDA toolkit, where there is one; nothing fails where there isn't. Sets
#
#   TMC_NVCC, TMC_CUDA_INCLUDE   the compiler, and the folder of cublasLt.h
#   TMC_NVCC_VERSION             "13.0.88"
#   TMC_CUDA                     whether the cuda backend is built, in which case
#                                `tmc compile` compiles for it by default
#
# What is found here is written into tmc: nothing probes a machine later.
find_program(TMC_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda/bin
  PATH_SUFFIXES bin)
find_path(TMC_CUDA_INCLUDE cublasLt.h HINTS ENV CUDA_HOME
  PATHS /usr/local/cuda/include PATH_SUFFIXES include)
# Without cuDNN the backend has plain convolutions only.
find_path(TMC_CUDNN_INCLUDE cudnn.h HINTS ${TMC_CUDA_INCLUDE} ENV CUDA_HOME
  PATH_SUFFIXES include)
mark_as_advanced(TMC_NVCC TMC_CUDA_INCLUDE TMC_CUDNN_INCLUDE)
# A step without convolutions doesn't ask for cuDNN where it runs.
set(TMC_CUDA_LIBRARIES "-Xlinker --as-needed -lcublasLt")
if(TMC_CUDNN_INCLUDE)
  string(APPEND TMC_CUDA_LIBRARIES " -lcudnn")
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
  option(TMC_CUDA "Build the cuda backend, two minutes of one core" ON)
else()
  message(STATUS "no CUDA toolkit: the cuda backend isn't built")
  set(TMC_CUDA OFF)
endif()
set(TMC_DEFAULT_TARGET cpu)
if(TMC_CUDA)
  set(TMC_DEFAULT_TARGET cuda:sm_90)
endif()
