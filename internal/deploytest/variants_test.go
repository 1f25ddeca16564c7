// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package deploytest

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// What a cluster needs of the manifests, and what they may not have, looked up in the objects that
// kustomize has built. That the configuration in them is right is in config_test.go.

// deadline is the time within which a pod has left the cluster, from the moment at which it is told
// to end.
const deadline = 25 * time.Second

// workload is what runs the nodes.
type workload struct {
	name     string
	replicas int32
	selector *meta.LabelSelector
	pod      core.PodTemplateSpec
}

// nodes returns the workload of a directory.
func nodes(t *testing.T, all objects) workload {
	t.Helper()
	if set, is := all["StatefulSet/visits"].(*apps.StatefulSet); is {
		return workload{set.Name, *set.Spec.Replicas, set.Spec.Selector, set.Spec.Template}
	}
	d := get[*apps.Deployment](t, all, "Deployment/")
	return workload{d.Name, *d.Spec.Replicas, d.Spec.Selector, d.Spec.Template}
}

// matches reports whether a selector is one of the pods.
func (w workload) matches(t *testing.T, selector *meta.LabelSelector) bool {
	t.Helper()
	s, err := meta.LabelSelectorAsSelector(selector)
	require.NoError(t, err)
	return !s.Empty() && s.Matches(labels.Set(w.pod.Labels))
}

// each runs a test on each directory.
func each(t *testing.T, test func(t *testing.T, all objects, w workload)) {
	t.Helper()
	for _, dir := range directories {
		t.Run(dir, func(t *testing.T) {
			all := build(t, dir)
			test(t, all, nodes(t, all))
		})
	}
}

// Nodes find each other before they are ready, start all at once, and are spread over machines.
func TestNodesCanFormACluster(t *testing.T) {
	each(t, func(t *testing.T, all objects, w workload) {
		require.GreaterOrEqual(t, w.replicas, int32(3))
		require.True(t, w.matches(t, w.selector))
		service := all["Service/visits"].(*core.Service)
		require.Equal(t, core.ClusterIPNone, service.Spec.ClusterIP)
		require.True(t, service.Spec.PublishNotReadyAddresses)
		for _, s := range []*core.Service{service, all["Service/visits-http"].(*core.Service)} {
			require.True(t, w.matches(t, &meta.LabelSelector{MatchLabels: s.Spec.Selector}))
			for _, p := range s.Spec.Ports {
				require.Contains(t, ports(w.pod), p.TargetPort.StrVal)
			}
		}
		require.False(t, all["Service/visits-http"].(*core.Service).Spec.PublishNotReadyAddresses, "clients go to nodes that are ready")
		if set, is := all["StatefulSet/visits"].(*apps.StatefulSet); is {
			require.Equal(t, apps.ParallelPodManagement, set.Spec.PodManagementPolicy)
			require.Equal(t, service.Name, set.Spec.ServiceName)
			require.Len(t, set.Spec.VolumeClaimTemplates, 1)
		} else {
			d := all["Deployment/visits"].(*apps.Deployment)
			require.Equal(t, intstr.FromInt32(0), *d.Spec.Strategy.RollingUpdate.MaxUnavailable)
			require.Equal(t, intstr.FromInt32(1), *d.Spec.Strategy.RollingUpdate.MaxSurge)
			data := volume(t, w.pod.Spec, "data")
			require.NotNil(t, data.EmptyDir, "the restart of a container keeps what its node remembers")
			require.NotEqual(t, core.StorageMediumMemory, data.EmptyDir.Medium)
		}
		spread := w.pod.Spec.TopologySpreadConstraints
		require.Len(t, spread, 1)
		require.Equal(t, core.LabelHostname, spread[0].TopologyKey)
		require.True(t, w.matches(t, spread[0].LabelSelector))
	})
}

// ports returns the names of the ports of the node's container.
func ports(pod core.PodTemplateSpec) (names []string) {
	for _, p := range pod.Spec.Containers[0].Ports {
		names = append(names, p.Name)
	}
	return names
}

// volume returns a volume of a pod.
func volume(t *testing.T, pod core.PodSpec, name string) core.Volume {
	t.Helper()
	i := slices.IndexFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == name })
	require.NotEqual(t, -1, i, name)
	return pod.Volumes[i]
}

// Three probes are asked on the listener that needs no certificate, and never readiness as liveness.
func TestProbesAskTheListenerForHealth(t *testing.T) {
	each(t, func(t *testing.T, _ objects, w workload) {
		node := w.pod.Spec.Containers[0]
		for want, probe := range map[string]*core.Probe{"/health/startup": node.StartupProbe, "/health/ready": node.ReadinessProbe, "/health/live": node.LivenessProbe} {
			require.NotNil(t, probe, want)
			require.Equal(t, want, probe.HTTPGet.Path)
			require.Equal(t, "health", probe.HTTPGet.Port.StrVal)
		}
		start := time.Duration(node.StartupProbe.PeriodSeconds*node.StartupProbe.FailureThreshold) * time.Second
		require.GreaterOrEqual(t, start, 5*time.Minute, "a node that waits for others is not restarted soon")
	})
}

// The pause before the signal, leaving and exiting fit the deadline, and the pod is killed later.
func TestANodeLeavesWithinOneDeadline(t *testing.T) {
	each(t, func(t *testing.T, all objects, w workload) {
		pod := w.pod.Spec
		pause := time.Duration(pod.Containers[0].Lifecycle.PreStop.Sleep.Seconds) * time.Second
		require.Positive(t, pause)
		settings := settings(t, all)
		within := settings.Shutdown.Deadline.Duration
		leaving := settings.Membership.LeaveTimeout.Duration + settings.Membership.ExitTimeout.Duration
		require.Positive(t, settings.Membership.LeaveTimeout.Duration)
		require.GreaterOrEqual(t, within, leaving, "the node is waited for as long as it may take")
		require.LessOrEqual(t, pause+within, deadline)
		require.GreaterOrEqual(t, time.Duration(*pod.TerminationGracePeriodSeconds)*time.Second, deadline+5*time.Second)
	})
}

// One node is evicted at a time, which leaves a majority of three and of any larger number.
func TestEvictionKeepsAMajority(t *testing.T) {
	each(t, func(t *testing.T, all objects, w workload) {
		budget := all["PodDisruptionBudget/visits"].(*policy.PodDisruptionBudget)
		require.True(t, w.matches(t, budget.Spec.Selector))
		require.Nil(t, budget.Spec.MinAvailable)
		gone := budget.Spec.MaxUnavailable.IntVal
		require.Greater(t, w.replicas-gone, w.replicas/2, "more than half of the nodes stay")
		require.Equal(t, int32(1), gone)
	})
}

// A pod has no right that it does not need.
func TestPodsHaveTheLeastRights(t *testing.T) {
	each(t, func(t *testing.T, all objects, w workload) {
		pod := w.pod.Spec
		account := all["ServiceAccount/"+pod.ServiceAccountName].(*core.ServiceAccount)
		require.False(t, *account.AutomountServiceAccountToken)
		role, asks := all["Role/visits-discovery"].(*rbac.Role)
		if asks {
			require.Equal(t, []rbac.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}}}, role.Rules)
			binding := all["RoleBinding/visits-discovery"].(*rbac.RoleBinding)
			require.Equal(t, role.Name, binding.RoleRef.Name)
			require.Equal(t, pod.ServiceAccountName, binding.Subjects[0].Name)
			require.True(t, *pod.AutomountServiceAccountToken)
		} else {
			require.Nil(t, pod.AutomountServiceAccountToken, "nothing asks the API server")
		}
		for name := range all {
			require.False(t, strings.HasPrefix(name, "ClusterRole"), name)
		}
		require.True(t, *pod.SecurityContext.RunAsNonRoot)
		require.Equal(t, core.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type)
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
			require.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
			require.Equal(t, []core.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
			require.NotContains(t, c.Resources.Limits, core.ResourceCPU, "a node that is throttled is taken for dead")
			require.Contains(t, c.Resources.Limits, core.ResourceMemory)
		}
	})
}

// The node's container never sees the key of the authority, and no secret is readable for all.
func TestKeysAreMountedWhereTheyAreNeeded(t *testing.T) {
	each(t, func(t *testing.T, _ objects, w workload) {
		pod := w.pod.Spec
		for _, m := range pod.Containers[0].VolumeMounts {
			if m.Name == "data" {
				continue
			}
			require.True(t, m.ReadOnly, m.Name)
			require.NotEqual(t, "authority", m.Name)
		}
		for _, v := range pod.Volumes {
			if v.Secret == nil {
				continue
			}
			if len(v.Secret.Items) > 0 {
				require.Equal(t, []core.KeyToPath{{Key: "tls.crt", Path: "ca.crt"}}, v.Secret.Items, "the certificate alone is no secret")
				continue
			}
			require.Equal(t, int32(0o440), *v.Secret.DefaultMode)
		}
	})
}

// Only nodes reach the port of the nodes.
func TestThePortOfTheNodesIsForNodes(t *testing.T) {
	each(t, func(t *testing.T, all objects, w workload) {
		p := all["NetworkPolicy/visits"].(*networking.NetworkPolicy)
		require.True(t, w.matches(t, &p.Spec.PodSelector))
		for _, rule := range p.Spec.Ingress {
			for _, port := range rule.Ports {
				require.Contains(t, ports(w.pod), port.Port.StrVal)
				if port.Port.StrVal == "node" {
					require.Len(t, rule.From, 1)
					require.True(t, w.matches(t, rule.From[0].PodSelector))
				}
			}
		}
	})
}

// The monitor finds the headless service alone, so that no node is asked twice, at the port for health.
func TestTheMonitorFindsTheMetrics(t *testing.T) {
	all := build(t, "production")
	monitor := get[*serviceMonitor](t, all, "ServiceMonitor/")
	selector, err := meta.LabelSelectorAsSelector(&monitor.Spec.Selector)
	require.NoError(t, err)
	headless, http := all["Service/visits"].(*core.Service), all["Service/visits-http"].(*core.Service)
	require.True(t, selector.Matches(labels.Set(headless.Labels)))
	require.False(t, selector.Matches(labels.Set(http.Labels)))
	require.Len(t, monitor.Spec.Endpoints, 1)
	require.True(t, slices.ContainsFunc(headless.Spec.Ports, func(p core.ServicePort) bool { return p.Name == monitor.Spec.Endpoints[0].Port }))
	require.Equal(t, "/metrics", path.Clean(monitor.Spec.Endpoints[0].Path))
	cfg := settings(t, all)
	require.True(t, cfg.Management.Health.Metrics)
	require.Equal(t, "prometheus", cfg.Telemetry.Metrics)
}

// The overlay to copy is five nodes, one a machine.
func TestTheOverlayForProduction(t *testing.T) {
	all := build(t, "production")
	w := nodes(t, all)
	require.Equal(t, int32(5), w.replicas)
	require.Equal(t, core.DoNotSchedule, w.pod.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable)
	require.Equal(t, "visits", all["StatefulSet/visits"].(*apps.StatefulSet).Namespace)
}
