# The instruction sets of the cpu backend, and which of them `--target cpu` is.
#
#   TMC_CPU_SETS          those that this compiler knows: v3 v4 v4-bf16 v4-amx
#   TMC_CPU_FLAGS_<set>   what code for the set is compiled with
#   TMC_CPU_BASE_<set>    the set that its kernels without bf16 are compiled for
#   TMC_CPU_TARGET        what --target cpu stands for, by default the largest set
#                         that the configuring machine runs
#
# Configuration looks at the machine once; nothing looks at it later.
include(CheckCXXCompilerFlag)
set(v3 -march=x86-64-v3)
set(v4 -march=x86-64-v4)
set(v4-bf16 ${v4} -mavx512bf16)
set(v4-amx ${v4-bf16} -mamx-tile -mamx-bf16)
set(TMC_CPU_BASE_v3 v3)
foreach(set v4 v4-bf16 v4-amx)
  set(TMC_CPU_BASE_${set} v4)
endforeach()

set(TMC_CPU_SETS)
foreach(set v3 v4 v4-bf16 v4-amx)
  string(MAKE_C_IDENTIFIER "TMC_CXX_HAS_${set}" has)
  string(REPLACE ";" " " flags "${${set}}")
  check_cxx_compiler_flag("${flags}" ${has})
  if(${has})
    list(APPEND TMC_CPU_SETS ${set})
    set(TMC_CPU_FLAGS_${set} ${${set}})
  endif()
endforeach()
if(NOT TMC_CPU_SETS)
  message(FATAL_ERROR "the cpu backend is for x86-64, and needs a compiler that "
    "knows -march=x86-64-v3: g++ 11, clang 12 or newer")
endif()

if(NOT TMC_CPU_TARGET)
  # A compiler's -march=native is what both it and this processor know.
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -dM -E -x c++ /dev/null
    OUTPUT_VARIABLE native ERROR_QUIET)
  set(found v3)
  foreach(pair "v4=AVX512F AVX512BW AVX512CD AVX512DQ AVX512VL" "v4-bf16=AVX512BF16"
          "v4-amx=AMX_TILE AMX_BF16")
    string(REGEX MATCH "^([^=]+)=(.*)$" _ "${pair}")
    set(set ${CMAKE_MATCH_1})
    string(REPLACE " " ";" macros "${CMAKE_MATCH_2}")
    foreach(macro ${macros})
      if(NOT native MATCHES "__${macro}__")
        set(set)
      endif()
    endforeach()
    # Each set adds to the one before it.
    if(NOT set OR NOT set IN_LIST TMC_CPU_SETS)
      break()
    endif()
    set(found ${set})
  endforeach()
  if(NOT native MATCHES "__AVX2__" OR NOT native MATCHES "__FMA__")
    message(WARNING "this processor has no AVX2: steps for the cpu can be compiled "
      "here, and run elsewhere")
  endif()
  set(TMC_CPU_TARGET ${found} CACHE STRING
    "The instruction set that --target cpu stands for: v3, v4, v4-bf16, v4-amx")
endif()
if(NOT TMC_CPU_TARGET IN_LIST TMC_CPU_SETS)
  message(FATAL_ERROR "TMC_CPU_TARGET is '${TMC_CPU_TARGET}'; this compiler knows ${TMC_CPU_SETS}")
endif()
message(STATUS "--target cpu is cpu:${TMC_CPU_TARGET}")
