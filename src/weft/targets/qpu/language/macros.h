// SPDX-License-Identifier: Apache-2.0
#pragma once
// The statements of the kernel language as macros, in QPULib's spelling: six names, of which no
// header of the standard library, of Python or of this project makes use.

#include "weft/targets/qpu/language/language.h"

#define If(c)          \
  ::weft::qpu::If_(c); \
  {
#define Else            \
  }                     \
  ::weft::qpu::Else_(); \
  {
#define End \
  }         \
  ::weft::qpu::End_();
#define While(c)          \
  ::weft::qpu::While_(c); \
  {
#define Where(b)          \
  ::weft::qpu::Where_(b); \
  {
#define For(init, cond, inc) \
  {                          \
    init;                    \
    ::weft::qpu::For_(cond); \
    inc;                     \
    ::weft::qpu::ForBody_();
