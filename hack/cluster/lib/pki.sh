# shellcheck shell=bash
# Keys and certificates. They outlive `down`, so that a client's copy of the CA
# stays good; `down --purge` removes them.

new_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1" 2>/dev/null; }
cert() { # NAME SUBJECT EKU [SAN]
	[ -s "$PKI/$1.crt" ] && return 0
	new_key "$PKI/$1.key"
	openssl req -new -key "$PKI/$1.key" -subj "$2" -out "$PKI/$1.csr" 2>/dev/null
	printf 'basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\nextendedKeyUsage=%s\n%s\n' "$3" "${4:+subjectAltName=$4}" >"$PKI/$1.ext"
	openssl x509 -req -in "$PKI/$1.csr" -CA "$PKI/ca.crt" -CAkey "$PKI/ca.key" -set_serial "0x$(openssl rand -hex 8)" \
		-days 3650 -extfile "$PKI/$1.ext" -out "$PKI/$1.crt.new" 2>/dev/null
	rm -f "$PKI/$1.csr" "$PKI/$1.ext"
	mv "$PKI/$1.crt.new" "$PKI/$1.crt" # complete, or not there
}
kubeconfig() { # CERT SERVER FILE
	cat >"$3.new" <<-E
		apiVersion: v1
		kind: Config
		current-context: codeact
		contexts: [{name: codeact, context: {cluster: codeact, user: $1}}]
		clusters: [{name: codeact, cluster: {server: "$2", certificate-authority-data: $(base64 -w0 "$PKI/ca.crt")}}]
		users: [{name: $1, user: {client-certificate-data: $(base64 -w0 "$PKI/$1.crt"), client-key-data: $(base64 -w0 "$PKI/$1.key")}}]
	E
	chmod 600 "$3.new"
	mv "$3.new" "$3"
}
pki() {
	local n inside=https://$CP_IP:6443
	mkdir -p "$PKI"
	chmod 700 "$PKI"
	if [ ! -s "$PKI/ca.crt" ]; then
		new_key "$PKI/ca.key"
		openssl req -x509 -new -key "$PKI/ca.key" -days 3650 -subj /CN=codeact-cluster-ca -addext basicConstraints=critical,CA:TRUE \
			-addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature -out "$PKI/ca.crt" 2>/dev/null
	fi
	if [ ! -s "$PKI/sa.pub" ]; then # signs service account tokens
		openssl genrsa -out "$PKI/sa.key" 2048 2>/dev/null
		openssl rsa -in "$PKI/sa.key" -pubout -out "$PKI/sa.pub" 2>/dev/null
	fi
	cert apiserver /CN=kube-apiserver serverAuth "IP:127.0.0.1,IP:$CP_IP,IP:$SVC_IP,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
	cert apiserver-kubelet /O=system:masters/CN=kube-apiserver-kubelet-client clientAuth
	cert front-proxy /CN=front-proxy-client clientAuth
	cert kube-controller-manager /CN=system:kube-controller-manager clientAuth
	cert kube-scheduler /CN=system:kube-scheduler clientAuth
	cert kube-proxy /CN=system:kube-proxy clientAuth
	cert coredns /O=system:masters/CN=coredns clientAuth
	cert admin /O=system:masters/CN=admin clientAuth
	for n in kube-controller-manager kube-scheduler kube-proxy coredns; do kubeconfig $n $inside "$CONF/$n.kubeconfig"; done
}
node_pki() {
	cert "kubelet-serving$S" "/O=system:nodes/CN=system:node:$NODE" serverAuth "IP:$IP,IP:127.0.0.1,DNS:$NODE"
	cert "kubelet$S" "/O=system:nodes/CN=system:node:$NODE" clientAuth
	kubeconfig "kubelet$S" https://$CP_IP:6443 "$NODE_CONF/kubelet.kubeconfig"
}
