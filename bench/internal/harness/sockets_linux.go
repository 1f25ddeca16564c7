// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// SocketsCounted tells whether this system counts packets by connection.
const SocketsCounted = true

// descriptors is the directory that has a link for each open file of this process.
const descriptors = "/proc/self/fd"

// Bytes of headers. Options are the part of a TCP header that a connection may have on
// each packet: the timestamps, padded to words.
const (
	headerIPv4   = 20
	headerIPv6   = 40
	headerTCP    = 20
	optionsStamp = 12
)

// optionStamps is TCPI_OPT_TIMESTAMPS of Linux: both ends have agreed on timestamps.
const optionStamps = 1

// SocketsNow returns what the TCP connections of this process have sent.
func SocketsNow() (Snapshot, error) {
	entries, err := os.ReadDir(descriptors)
	if err != nil {
		return nil, err
	}
	found := Snapshot{}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil {
			return nil, err
		}
		target, err := os.Readlink(descriptors + "/" + entry.Name())
		if err != nil {
			continue // Closed since the directory was read.
		}
		var socket uint64
		if !strings.HasPrefix(target, "socket:") {
			continue
		}
		if _, err := fmt.Sscanf(target, "socket:[%d]", &socket); err != nil {
			return nil, fmt.Errorf("%s: %w", target, err)
		}
		if sent, ok := sentBy(fd); ok {
			found[socket] = sent
		}
	}
	return found, nil
}

// stateListen is TCP_LISTEN of Linux.
const stateListen = 10

// sentBy returns what one socket has sent, if it is a connection of TCP.
func sentBy(fd int) (Traffic, bool) {
	sent, _, ok := exchangedBy(fd)
	return sent, ok
}

// Exchanged returns what a connection of TCP has sent and received so far. Of a connection that is closed soon it is
// the last word but for the packets that close it.
func Exchanged(conn net.Conn) (sent, received Traffic, ok bool) {
	socket, is := conn.(syscall.Conn)
	if !is {
		return sent, received, false
	}
	raw, err := socket.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { sent, received, ok = exchangedBy(int(fd)) })
	}
	return sent, received, ok && err == nil
}

// exchangedBy returns what one socket has sent and received, if it is a connection of TCP.
func exchangedBy(fd int) (sent, received Traffic, ok bool) {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil || info.State == stateListen {
		return sent, received, false
	}
	header := uint64(headerIPv4)
	if domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil || domain == unix.AF_INET6 {
		header = headerIPv6
	}
	header += headerTCP
	if info.Options&optionStamps != 0 {
		header += optionsStamp
	}
	traffic := func(payload uint64, packets, data uint32) Traffic {
		return Traffic{Bytes: payload + uint64(packets)*header, Payload: payload, Packets: uint64(packets), Data: uint64(data)}
	}
	return traffic(info.Bytes_sent, info.Segs_out, info.Data_segs_out), traffic(info.Bytes_received, info.Segs_in, info.Data_segs_in), true
}
