// SPDX-License-Identifier: Apache-2.0
#include "kinds/program/program_object.hpp"

#include <new>

#include "catalog/samples.hpp"
#include "kinds/program/sample_writer.hpp"

namespace espalier::program {

bool KindMemory::take(std::uint64_t bytes) noexcept {
  std::uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_ - used) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

bool ObjectMemory::charge(std::uint64_t bytes) noexcept {
  if (!kind_->take(bytes)) return false;
  used_.fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

void* ObjectMemory::do_allocate(std::size_t bytes, std::size_t alignment) {
  if (!charge(bytes)) throw std::bad_alloc();
  try {
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  } catch (...) {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    kind_->give(bytes);
    throw;
  }
}

void ObjectMemory::do_deallocate(void* at, std::size_t bytes, std::size_t alignment) {
  std::pmr::new_delete_resource()->deallocate(at, bytes, alignment);
  used_.fetch_sub(bytes, std::memory_order_relaxed);
  kind_->give(bytes);
}

// An exception of the program's own code hides a number, and does not end the process.
catalog::ObjectNumbers ProgramObject::numbers() const {
  catalog::ObjectNumbers numbers{0, memory_->used()};
  try {
    numbers.entries = own_->entries();
  } catch (...) {
    numbers.entries = 0;
  }
  return numbers;
}

void ProgramObject::add_samples(catalog::SampleList& to) const {
  SampleWriter writer(to, kind_name_);
  try {
    ObjectSamples samples = writer.samples();
    own_->add_samples(samples);
  } catch (const std::bad_alloc&) {
    throw;         // its caller handles it
  } catch (...) {  // other exceptions hide the samples
  }
}

}  // namespace espalier::program
