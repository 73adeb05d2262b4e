//go:build !linux

package main

import "syscall"

// withoutNetwork has no other meaning here.
func withoutNetwork() *syscall.SysProcAttr { return nil }
