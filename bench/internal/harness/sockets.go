// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

// What the kernel sends over the TCP connections of this process is counted with the headers of
// IP and TCP, pure acknowledgements included: a process that counts at its own writes sees
// neither. On systems other than Linux nothing is counted, see [SocketsCounted].

// Traffic is what was sent.
type Traffic struct {
	Bytes   uint64 // With the headers of IP and TCP.
	Payload uint64 // Without headers.
	Packets uint64
	Data    uint64 // Packets that carry payload; the others only acknowledge.
}

// Snapshot has what each TCP connection of this process has sent so far, by the number
// that the kernel gave its socket.
type Snapshot map[uint64]Traffic

// Since adds up what was sent after an earlier snapshot. What a connection sent that has
// been closed in between is not known, and left out.
func (s Snapshot) Since(before Snapshot) (sum Traffic) {
	for socket, now := range s {
		was := before[socket] // Zero for a new connection.
		sum.Bytes += now.Bytes - was.Bytes
		sum.Payload += now.Payload - was.Payload
		sum.Packets += now.Packets - was.Packets
		sum.Data += now.Data - was.Data
	}
	return sum
}
