// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

// Snapshot is the memory of an entity, from an instance that has stopped for the next one. With a Loss there is no
// memory, and the Loss says why.
type Snapshot struct {
	Entity string
	Data   []byte
	Loss   Loss
}

// snapshotOverhead is how many bytes a snapshot counts in bounds beyond its parts: what its record takes on the wire
// and in memory.
const snapshotOverhead = 64

// Size is the number of bytes that the snapshot counts in bounds.
func (s Snapshot) Size() int { return len(s.Entity) + len(s.Data) + snapshotOverhead }

// SizeOf is the number of bytes that snapshots count in bounds.
func SizeOf(all []Snapshot) (n int) {
	for _, s := range all {
		n += s.Size()
	}
	return n
}

// Lose returns the snapshots without their memory, which is lost for a reason. One that was lost before keeps its
// reason.
func Lose(all []Snapshot, why Loss) []Snapshot {
	lost := make([]Snapshot, 0, len(all))
	for _, s := range all {
		if s.Data = nil; s.Loss == LossNone {
			s.Loss = why
		}
		lost = append(lost, s)
	}
	return lost
}

// Loss says why an entity starts without the memory that it had at its last home.
type Loss uint8

// The losses.
const (
	LossNone      Loss = iota // The memory is there.
	LossFailed                // Snapshot returned an error, or panicked.
	LossTooLarge              // The snapshot has more bytes than one may have.
	LossNoRoom                // The snapshots of the shard have more bytes together than they may have.
	LossTooSlow               // Snapshot did not return in time.
	LossOnTheWay              // The new home could not be told in time, or the coordinator had too many on their way.
	LossRefused               // Restore returned an error, or panicked, or the entity has none.
	LossIdle                  // No message came to the entity for as long as an idle one is kept.
	LossResharded             // The shard was retired: memory does not go to shards of another layout.

	lossCount
)

// Losses is the number of values of [Loss].
const Losses = int(lossCount)

// String returns a word for the loss.
func (l Loss) String() string {
	words := [Losses]string{"none", "failed", "too-large", "no-room", "too-slow", "on-the-way", "refused", "idle", "resharded"}
	if int(l) >= Losses {
		return "unknown"
	}
	return words[l]
}

// MemoryLost says that the memory of an entity is lost.
type MemoryLost struct {
	Entity string
	Loss   Loss
}

func (MemoryLost) shardEvent() {}
