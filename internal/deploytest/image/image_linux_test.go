// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build namespaces

package image

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
)

// The test lays the image out and starts its programs in it ([TestTheImageRunsAsTheManifestsRunIt]). The process in
// between, which mounts what a container would have mounted, is this program again ([contain]).

const (
	top  = "../../.." // The directory of the modules.
	user = 65532

	// containing begins the arguments of the process that becomes the container.
	containing = "contain"

	prSetNoNewPrivs, prCapAmbient, prCapAmbientClearAll = 38, 47, 4
	capChown, capSysChroot, capSysAdmin                 = 0, 18, 21
)

func TestMain(m *testing.M) {
	if len(os.Args) > 5 && os.Args[1] == containing {
		err := contain(os.Args[2], os.Args[3], strings.Split(os.Args[4], ","), os.Args[5:])
		fmt.Fprintln(os.Stderr, "contain:", err) // It has become the program otherwise.
		os.Exit(125)
	}
	os.Exit(m.Run())
}

// contain makes a copy of a directory the root of this process, in memory: volumes are empty directories that can be
// written to, but for the first, which is the given directory; all else cannot be. Then it becomes a program of
// that root, without any right.
func contain(image, data string, volumes, program []string) error {
	// What is mounted here is nobody else's.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private: %w", err)
	}
	root := filepath.Join(filepath.Dir(image), "root")
	if err := syscall.Mount("root", root, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "size=512m,mode=755"); err != nil {
		return fmt.Errorf("root: %w", err)
	}
	if err := os.CopyFS(root, os.DirFS(image)); err != nil {
		return err
	}
	for i, path := range volumes {
		source, kind, flags, options := "volume", "tmpfs", uintptr(syscall.MS_NOSUID|syscall.MS_NODEV), "size=64m,mode=700"
		if i == 0 {
			source, kind, flags, options = data, "", syscall.MS_BIND, ""
		}
		if err := syscall.Mount(source, filepath.Join(root, path), kind, flags, options); err != nil {
			return fmt.Errorf("volume %s: %w", path, err)
		}
	}
	if err := syscall.Mount("", root, "", syscall.MS_REMOUNT|syscall.MS_RDONLY|syscall.MS_NOSUID|syscall.MS_NODEV, ""); err != nil {
		return fmt.Errorf("read-only: %w", err)
	}
	if err := syscall.Chdir(root); err != nil {
		return err
	}
	if err := syscall.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot: %w", err)
	}
	if err := syscall.Unmount(".", syscall.MNT_DETACH); err != nil {
		return err
	}
	if err := syscall.Chdir("/"); err != nil {
		return err
	}
	for _, call := range [][2]uintptr{{prCapAmbient, prCapAmbientClearAll}, {prSetNoNewPrivs, 1}} {
		if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, call[0], call[1], 0, 0, 0, 0); errno != 0 {
			return fmt.Errorf("prctl %d: %w", call[0], errno)
		}
	}
	return syscall.Exec(program[0], program, os.Environ())
}

// layout is the image as a directory.
type layout struct {
	t       *testing.T
	dir     string   // Its root.
	data    string   // What is mounted at the first volume, and kept between programs.
	volumes []string // What the manifests mount to be written to, the data directory first.
}

// lay lays the last stage of the Dockerfile out.
func lay(t *testing.T) *layout {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, "deploy", "Dockerfile"))
	require.NoError(t, err)
	dir := t.TempDir()
	l := &layout{t: t, dir: filepath.Join(dir, "image"), data: filepath.Join(dir, "data")}
	for _, path := range []string{l.dir, l.data, filepath.Join(dir, "root")} {
		require.NoError(t, os.Mkdir(path, 0o755))
	}
	program := regexp.MustCompile(`(?m)^ARG PROGRAM=\./(\S+)$`).FindStringSubmatch(string(text))[1]
	built := map[string]func(to string){
		"/out/node": func(to string) { l.build(program, to) }, "/out/quorate": func(to string) { l.build("tools/cmd/quorate", to) },
		"/out/data": l.mkdir, "/out/tls": l.mkdir,
	}
	last := string(text)[strings.LastIndex(string(text), "\nFROM "):]
	copies := regexp.MustCompile(`(?m)^COPY --from=build (?:--chown=65532:65532 )?(.*) (\S+)$`).FindAllStringSubmatch(last, -1)
	require.Len(t, copies, strings.Count(last, "\nCOPY "))
	for _, c := range copies {
		for source := range strings.FieldsSeq(c[1]) {
			to := c[2]
			if strings.HasSuffix(to, "/") {
				to += filepath.Base(source)
			}
			require.Contains(t, built, source)
			built[source](filepath.Join(l.dir, to))
		}
	}
	l.volumes = written(t)
	return l
}

// build builds a program as the first stage does.
func (l *layout) build(program, to string) {
	l.t.Helper()
	module, rest, _ := strings.Cut(program, "/")
	cmd := exec.CommandContext(l.t.Context(), "go", "build", "-C", filepath.Join(top, module), "-trimpath", "-ldflags=-s", "-o", to, "./"+rest)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	require.NoError(l.t, err, string(out))
}

func (l *layout) mkdir(to string) { require.NoError(l.t, os.MkdirAll(to, 0o755)) }

// put writes a file of the image, as something that is mounted to be read.
func (l *layout) put(path string, text []byte) {
	l.t.Helper()
	l.mkdir(filepath.Join(l.dir, filepath.Dir(path)))
	require.NoError(l.t, os.WriteFile(filepath.Join(l.dir, path), text, 0o600))
}

// written returns the paths that manifests mount to be written to, the data directory first.
func written(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	for _, name := range []string{"kubernetes/statefulset/statefulset.yaml", "kubernetes/deployment/deployment.yaml", "compose.yaml"} {
		text, err := os.ReadFile(filepath.Join(top, "deploy", name))
		require.NoError(t, err)
		of := regexp.MustCompile(`mountPath: ([^,}\s]+)\}|"\w+:(/[^:"]+)"`).FindAllStringSubmatch(string(text), -1)
		require.NotEmpty(t, of, name)
		for _, m := range of {
			found[m[1]+m[2]] = true
		}
	}
	const data = "/var/lib/quorate"
	require.True(t, found[data])
	paths := []string{data}
	for path := range found {
		if path != data {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths[1:])
	return paths
}

// command returns a program of the image, to be started in a container of its own.
func (l *layout) command(ctx context.Context, env []string, volumes []string, program ...string) *exec.Cmd {
	self, err := os.Executable()
	require.NoError(l.t, err)
	cmd := exec.CommandContext(ctx, self, append([]string{containing, l.dir, l.data, strings.Join(volumes, ",")}, program...)...)
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{capChown, capSysChroot, capSysAdmin},
		Pdeathsig:   syscall.SIGKILL,
	}
	return cmd
}

// run runs a program of the image to its end.
func (l *layout) run(volumes []string, program ...string) (string, error) {
	out, err := l.command(patience.Context(l.t), nil, volumes, program...).CombinedOutput()
	return string(out), err
}

// free returns an address on the loopback interface at which nobody listens.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// await asks for a path until the answer has status 200.
func await(t *testing.T, url string, ended <-chan error, said *os.File) {
	t.Helper()
	limit, every := patience.Ended(t), time.NewTicker(100*time.Millisecond)
	defer every.Stop()
	for {
		status := 0
		if response, err := http.Get(url); err == nil {
			status = response.StatusCode
			require.NoError(t, response.Body.Close())
		}
		if status == http.StatusOK {
			return
		}
		select {
		case err := <-ended:
			require.FailNow(t, "the node has ended", "%v\n%s", err, lines(t, said))
		case <-limit:
			require.FailNow(t, "not in time", "%s: status %d\n%s", url, status, lines(t, said))
		case <-every.C:
		}
	}
}

// lines returns what a program has said into a file.
func lines(t *testing.T, said *os.File) string {
	t.Helper()
	text, err := os.ReadFile(said.Name())
	require.NoError(t, err)
	return string(text)
}

// status returns a field of the status of a process.
func status(t *testing.T, pid int, field string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^` + field + `:\s*(.*)$`).FindStringSubmatch(string(text))
	require.NotNil(t, found, field)
	return found[1]
}

// A node of the StatefulSet's configuration is a cluster of one in the image: it starts, is ready, and leaves, as a
// user without rights who can write to the volumes alone. The command in the image asks it.
func TestTheImageRunsAsTheManifestsRunIt(t *testing.T) {
	l := lay(t)
	for _, path := range l.volumes {
		require.DirExists(t, filepath.Join(l.dir, path), "manifests have it written to")
	}
	tls := l.certificates()
	address, health, management := free(t), free(t), free(t)
	config, err := os.ReadFile(filepath.Join(top, "deploy", "kubernetes", "statefulset", "cluster.yaml"))
	require.NoError(t, err)
	l.put("/etc/quorate/cluster.yaml", config)
	for name, text := range tls {
		l.put("/run/quorate/tls/"+name, text)
	}
	volumes := l.volumes[:1] // Those of a node.
	env := []string{
		"QUORATE_NODE__ADDRESS=" + address, "QUORATE_MEMBERSHIP__SEED_NODES=" + address, "QUORATE_TRANSPORT__BIND=" + address,
		"QUORATE_MANAGEMENT__ADDRESS=" + management, "QUORATE_MANAGEMENT__HEALTH__ADDRESS=" + health,
	}
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, said.Close()) })
	cmd := l.command(t.Context(), env, volumes, "/node", "-config", "/etc/quorate/cluster.yaml", "-http", "127.0.0.1:0", "-log-json")
	cmd.Stdout, cmd.Stderr = io.Discard, said
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // Ends with the process.
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	for _, check := range []string{"startup", "ready", "live"} {
		await(t, "http://"+health+"/health/"+check, ended, said)
	}

	require.Equal(t, "0000000000000000", status(t, cmd.Process.Pid, "CapEff"), "it has no rights")
	require.Equal(t, "1", status(t, cmd.Process.Pid, "NoNewPrivs"))
	inside := fmt.Sprintf("/proc/%d/root", cmd.Process.Pid)
	require.ErrorIs(t, os.WriteFile(inside+"/x", nil, 0o600), syscall.EROFS, "nobody can write to its root")
	names, err := os.ReadDir(inside)
	require.NoError(t, err)
	require.Len(t, names, 5, "etc, node, quorate, run and var: no shell, nothing else")
	require.DirExists(t, filepath.Join(l.data, "node"), "what it has to keep is on the volume")

	out, err := l.run(volumes, "/quorate", "members", "-node", "http://"+management)
	require.NoError(t, err, out)
	require.Contains(t, out, address)

	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-ended:
		require.NoError(t, err, lines(t, said))
	case <-patience.Ended(t):
		require.FailNow(t, "it has not left", lines(t, said))
	}
}

// certificates makes an authority and the certificate of a node by the command in the image, where the manifests
// have it write them.
func (l *layout) certificates() map[string][]byte {
	l.t.Helper()
	const dir = "/etc/quorate/tls/"
	require.Contains(l.t, l.volumes, strings.TrimSuffix(dir, "/"))
	kept := []string{strings.TrimSuffix(dir, "/")} // The first volume is kept.
	authority := []string{"-certificate", dir + "ca.crt", "-key", dir + "ca.key"}
	out, err := l.run(kept, append([]string{"/quorate", "cert", "authority"}, authority...)...)
	require.NoError(l.t, err, out)
	out, err = l.run(kept, "/quorate", "cert", "node", "127.0.0.1", "-certificate", dir+"tls.crt", "-key", dir+"tls.key", "-authority", dir+"ca.crt", "-authority-key", dir+"ca.key")
	require.NoError(l.t, err, out)
	out, err = l.run(l.volumes[:1], "/quorate", "cert", "authority", "-certificate", dir+"ca.crt", "-key", dir+"ca.key")
	require.Error(l.t, err, "without a volume there the root cannot be written to: %s", out)
	files := map[string][]byte{}
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		text, err := os.ReadFile(filepath.Join(l.data, name))
		require.NoError(l.t, err)
		files[name] = text
		require.NoError(l.t, os.Remove(filepath.Join(l.data, name)))
	}
	require.NoError(l.t, os.Remove(filepath.Join(l.data, "ca.key")))
	return files
}
