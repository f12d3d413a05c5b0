# SPDX-License-Identifier: Apache-2.0
# What programs of the command line need: libraries for people's eyes.
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
