// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// The bundler puts files of the contract into the program as text.
declare module "*.proto" {
  const text: string;
  export default text;
}
