// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/membership/shutdown"
)

// The end of a node with all that belongs to it: [Node.Run] waits for a reason, [Node.Shutdown] runs the phases of
// package shutdown, among them the node's own tasks ([newEnding]), and [ExitStatus] says how that went.

// ShutdownConfig says how a node ends by [Node.Run] and [Node.Shutdown].
type ShutdownConfig struct {
	// Deadline is how long the end may take in all, from 1s to 1h. Three fifths of it at least are left for leaving the
	// cluster, and a second, or a tenth, for what comes after that; a node that has not left by then ends all the same,
	// and the others find it gone. With the time before the process hears of its end, it should fit into that after which
	// it is killed: 30 s in Kubernetes.
	Deadline time.Duration `koanf:"deadline" range:"1s..1h"`

	// UnreadyFor is how long the node says that it is not ready before servers of the program are to end: the time in
	// which balancers notice, at most a quarter of deadline. It comes in addition to any that the orchestrator waits.
	UnreadyFor time.Duration `koanf:"unready-for" range:"0s..15m"`
}

// defaultShutdown returns 25 s, and no time for balancers.
func defaultShutdown() ShutdownConfig { return ShutdownConfig{Deadline: 25 * time.Second} }

// Validate reports every fault.
func (c ShutdownConfig) Validate() error {
	var faults field.Faults
	faults.Add(field.Ranges(c))
	faults.Relate(c.UnreadyFor > c.Deadline/4, "unready-for", "deadline", "%v is not from 0s to a quarter of shutdown.deadline, %v", c.UnreadyFor, c.Deadline/4)
	return faults.Err()
}

// ErrLate is wrapped by the error of [Node.Run] when the node had not left its cluster in time.
var ErrLate = errors.New("cluster: the node has not left its cluster in time, and was ended: the others find it gone")

// The exit statuses of [ExitStatus].
const (
	ExitLeft    = 0 // The node has left in order, and all tasks have done what they had to.
	ExitFailed  = 1 // Anything that is none of the others.
	ExitConfig  = 2 // The configuration has faults.
	ExitDown    = 3 // The others have declared the node down, or it found that it may not go on.
	ExitYielded = 4 // The node was refused since another one has its place.
	ExitDisk    = 5 // The disk of the node has failed.
	ExitLate    = 6 // The node had not left in time.
)

// ExitStatus returns with which status a process should end after an error of [Start] or [Node.Run]: who restarts
// processes, and who reads how they ended, can tell them apart. Restarted at once make sense all but ExitConfig and
// ExitDisk.
func ExitStatus(err error) int {
	switch _, invalid := errors.AsType[config.Errors](err); {
	case err == nil:
		return ExitLeft
	case invalid:
		return ExitConfig
	case errors.Is(err, membership.ErrDown):
		return ExitDown
	case errors.Is(err, membership.ErrYielded):
		return ExitYielded
	case errors.Is(err, membership.ErrDisk):
		return ExitDisk
	case errors.Is(err, ErrLate):
		return ExitLate
	}
	return ExitFailed
}

// nodeShutdown ends a node.
type nodeShutdown struct {
	*shutdown.Sequence

	node *Node
}

// leaveTask is the name of the task that leaves the cluster.
const leaveTask = "node"

// verdict is the error of a report. That of a node which is still leaving when the time of that is over is [ErrLate],
// as of one that has noticed it by itself.
func verdict(r shutdown.Report) error {
	err := r.Err()
	for _, t := range r.Results {
		if t.Phase == shutdown.Leave && t.Name == leaveTask && errors.Is(t.Err, shutdown.ErrUnfinished) {
			return errors.Join(ErrLate, err)
		}
	}
	return err
}

// newEnding returns the phases of a node, with what the node has to do in them.
func newEnding(n *Node, cfg ShutdownConfig, log *slog.Logger) (*nodeShutdown, error) {
	phases, err := shutdown.New(cfg.Deadline, log, shutdown.Phases(cfg.Deadline)...)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	e := &nodeShutdown{phases, n}
	_, unready := e.Add(shutdown.Unready, "balancers", func(ctx context.Context) error { return e.notice(ctx, cfg.UnreadyFor) })
	_, leave := e.Add(shutdown.Leave, leaveTask, e.leave)
	return e, errors.Join(unready, leave)
}

// await waits until ctx ends or the node has ended by itself, and returns which of the two it was.
func (e *nodeShutdown) await(ctx context.Context) (reason string) {
	select {
	case <-ctx.Done():
		return context.Cause(ctx).Error()
	case <-e.node.Done():
	}
	if err := e.node.Err(); err != nil {
		return err.Error()
	}
	return "the node has ended"
}

// notice gives balancers time to notice that the node is not ready.
func (e *nodeShutdown) notice(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-e.node.Done(): // Nobody is served any more.
	case <-ctx.Done():
	}
	return nil
}

// leave leaves the cluster. It keeps back a fifth of its time, a second at most, in which the node is ended if it has
// not left.
func (e *nodeShutdown) leave(ctx context.Context) error {
	leaving, cancel := ctx, context.CancelFunc(func() {})
	if at, ok := ctx.Deadline(); ok {
		leaving, cancel = context.WithDeadline(ctx, at.Add(-min(time.Second, time.Until(at)/5)))
	}
	defer cancel()
	err := e.node.Leave(leaving)
	if err == nil {
		return nil
	}
	if leaving.Err() != nil {
		err = fmt.Errorf("%w: %w", ErrLate, err)
	}
	return errors.Join(err, e.node.member.Close(), e.node.stop(ctx)) // Nothing is left to do for a node that has ended by itself.
}

// unready is a reason why the node is not ready.
func (e *nodeShutdown) unready() []string {
	if e.Begun() {
		return []string{"the node ends"}
	}
	return nil
}
