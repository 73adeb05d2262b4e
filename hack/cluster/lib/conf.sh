# shellcheck shell=bash
# Configuration files of the components.

cluster_conf() {
	cp "$HERE/audit-policy.yaml" "$CONF/audit-policy.yaml"
	cat >"$CONF/Corefile" <<-E
		cluster.local:53 in-addr.arpa:53 {
		  bind $CP_IP
		  errors
		  kubernetes cluster.local in-addr.arpa {
		    kubeconfig $CONF/coredns.kubeconfig codeact
		    pods insecure
		    ttl 1
		  }
		}
		.:53 {
		  bind $CP_IP
		  template ANY ANY . {
		    rcode NXDOMAIN
		  }
		}
	E
}
node_conf() {
	mkdir -p "$NODE_CONF/cni" "$STATE/varlog$S" "$STATE/pods-log$S" "$STATE/kubelet$S"
	node_pki
	echo "# no resolver outside the cluster" >"$NODE_CONF/resolv.conf"
	containerd_conf >"$NODE_CONF/containerd.toml"
	cni_conf >"$NODE_CONF/cni/10-codeact.conflist"
	kubelet_conf >"$NODE_CONF/kubelet.yaml"
	kube_proxy_conf >"$NODE_CONF/kube-proxy.yaml"
}
containerd_conf() {
	cat <<-E
		version = 3
		root = "$STATE/containerd$S"
		state = "/run/containerd"
		disabled_plugins = ["io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.erofs", "io.containerd.nri.v1.nri"]
		[grpc]
		  address = "/run/containerd/containerd.sock"
		[plugins.'io.containerd.cri.v1.images']
		  snapshotter = "overlayfs"
		  [plugins.'io.containerd.cri.v1.images'.pinned_images]
		    sandbox = "$PAUSE_IMAGE"
		[plugins.'io.containerd.cri.v1.runtime']
		  enable_selinux = false
		  disable_apparmor = true
		  # lowering oom_score_adj takes CAP_SYS_RESOURCE, which root in a container or sandbox may not have
		  restrict_oom_score_adj = true
		  [plugins.'io.containerd.cri.v1.runtime'.cni]
		    bin_dirs = ["$SET"]
		    conf_dir = "$NODE_CONF/cni"
		    max_conf_num = 1
		  [plugins.'io.containerd.cri.v1.runtime'.containerd]
		    default_runtime_name = "runc"
		    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
		      runtime_type = "io.containerd.runc.v2"
		      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
		        BinaryName = "$SET/runc"
		        SystemdCgroup = false
	E
}
cni_conf() {
	cat <<-E
		{"cniVersion": "1.0.0", "name": "codeact", "plugins": [
		  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
		   "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam", "ranges": [[{"subnet": "$POD_CIDR"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
		  {"type": "portmap", "capabilities": {"portMappings": true}, "backend": "nftables"}
		]}
	E
}
kubelet_conf() {
	local gates="{}"
	# With it the kubelet sees a container's end at once instead of at the next
	# relist, up to 1 s later. Off by default: users' clusters run without it.
	[ "${CODEACT_CLUSTER_EVENTED_PLEG:-0}" = 1 ] && gates="{EventedPLEG: true}"
	cat <<-E
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		featureGates: $gates
		failCgroupV1: false
		cgroupDriver: cgroupfs
		cgroupRoot: /$NODE_CGROUP
		containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
		authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $PKI/ca.crt}}
		authorization: {mode: Webhook}
		tlsCertFile: $PKI/kubelet-serving$S.crt
		tlsPrivateKeyFile: $PKI/kubelet-serving$S.key
		clusterDomain: cluster.local
		clusterDNS: ["$CP_IP"]
		resolvConf: $NODE_CONF/resolv.conf
		podLogsDir: $STATE/pods-log$S
		failSwapOn: false
		makeIPTablesUtilChains: false
		serializeImagePulls: false
		imageGCHighThresholdPercent: 100
		imageGCLowThresholdPercent: 99
		evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
		kubeAPIQPS: 200
		kubeAPIBurst: 400
		eventRecordQPS: 0
		maxPods: 200
		nodeStatusUpdateFrequency: 5s
		nodeLeaseDurationSeconds: 40
		shutdownGracePeriod: 0s
	E
}
kube_proxy_conf() {
	cat <<-E
		apiVersion: kubeproxy.config.k8s.io/v1alpha1
		kind: KubeProxyConfiguration
		mode: nftables
		hostnameOverride: $NODE
		bindAddress: 0.0.0.0
		clusterCIDR: $CLUSTER_CIDR
		clientConnection: {kubeconfig: $CONF/kube-proxy.kubeconfig}
		conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
		nftables: {minSyncPeriod: 100ms, syncPeriod: 30s}
	E
}
