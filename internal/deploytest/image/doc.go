// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package image tests what the image of a node holds without building one: the last stage of
// deploy/Dockerfile is laid out as a directory, with the programs built as the first stage builds them, and
// started as a container is: by a user without rights, in namespaces of its own, with an empty root that nobody
// can write to. Its test has the tag namespaces, for kernels that let a user make those.
package image
