// SPDX-License-Identifier: Apache-2.0

//go:build linux && !amd64 && !arm64

package nest

const initSupported = false

func initImage() []byte { return nil }
