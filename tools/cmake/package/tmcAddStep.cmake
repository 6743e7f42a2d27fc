# tmc_add_step(NAME MODEL FILE [WEIGHTS FILE|DIR] [BUDGET SIZE] [TARGET NAME]
#              [DIMS NAME=N ...] [PREFIX NAME] [FLAGS FLAG ...])
#
# Compiles a model when something is built that links NAME, an imported shared library:
#
#     tmc_add_step(step MODEL mlp.onnx BUDGET 1GiB TARGET cpu)
#     add_executable(app app.c)               # includes "step.h"
#     target_link_libraries(app step)
#
# PREFIX gan_d gives the functions gan_d_step_create, ..., for a program with several
# steps, which includes "NAME/step.h" of each. FLAGS are further ones of `tmc compile`.
# The step is compiled again when the model, its external data, the weights or tmc change.
function(tmc_add_step name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MODEL;WEIGHTS;BUDGET;TARGET;PREFIX" "DIMS;FLAGS")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "tmc_add_step(${name}): can't read '${arg_UNPARSED_ARGUMENTS}"
      "${arg_KEYWORDS_MISSING_VALUES}'")
  endif()
  if(NOT arg_MODEL)
    message(FATAL_ERROR "tmc_add_step(${name}): give MODEL FILE")
  endif()
  foreach(flag IN LISTS arg_FLAGS)
    if(flag MATCHES "^--?(o|emit|to|name|force|MD|MF|MT)(=|$)")
      message(FATAL_ERROR "tmc_add_step(${name}): ${flag} is chosen by tmc_add_step")
    endif()
  endforeach()
  # Only folders of steps are in the one that programs search for "NAME/step.h".
  set(steps "${CMAKE_CURRENT_BINARY_DIR}/tmc-steps")
  set(directory "${steps}/${name}")
  file(MAKE_DIRECTORY "${directory}")
  get_filename_component(model "${arg_MODEL}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  set(words "${model}" --emit lib --force -o "${directory}")
  set(read "${model}" "${tmc_PROGRAM}")
  if(arg_WEIGHTS)
    get_filename_component(weights "${arg_WEIGHTS}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND words --weights "${weights}")
    list(APPEND read "${weights}")
  endif()
  foreach(pair "BUDGET budget" "TARGET target" "PREFIX name")
    separate_arguments(pair)
    list(GET pair 0 key)
    list(GET pair 1 flag)
    if(arg_${key})
      list(APPEND words --${flag} "${arg_${key}}")
    endif()
  endforeach()
  foreach(dim IN LISTS arg_DIMS)
    list(APPEND words --dim "${dim}")
  endforeach()
  set(prefix tmc)
  set(soname libstep.so)
  if(arg_PREFIX)
    set(prefix ${arg_PREFIX})
    set(soname lib${arg_PREFIX}.so)
  endif()
  # plan.json is written last, so it stands for all. What else is read is in the depfile.
  add_custom_command(OUTPUT "${directory}/plan.json"
    BYPRODUCTS "${directory}/${soname}" "${directory}/step.h" "${directory}/tmc.h"
    COMMAND "${tmc_PROGRAM}" compile ${words} ${arg_FLAGS}
      -MF "${steps}/${name}.d" -MT "${directory}/plan.json"
    DEPENDS ${read} DEPFILE "${steps}/${name}.d"
    COMMENT "Compiling the step ${name}" VERBATIM)
  add_custom_target(${name}-step DEPENDS "${directory}/plan.json")
  add_library(${name} SHARED IMPORTED GLOBAL)
  # A program can link one library whose functions have the same names: CMake compares.
  set_target_properties(${name} PROPERTIES
    IMPORTED_LOCATION "${directory}/${soname}"
    IMPORTED_SONAME ${soname}
    INTERFACE_INCLUDE_DIRECTORIES "${directory};${steps}"
    INTERFACE_tmc_step_of_${prefix} ${name}
    COMPATIBLE_INTERFACE_STRING tmc_step_of_${prefix})
  add_dependencies(${name} ${name}-step)
endfunction()
