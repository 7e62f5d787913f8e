"""A Spark standalone cluster on this machine: a master and two workers, from the jars of pyspark."""

import os
import subprocess
import uuid
from pathlib import Path

import psutil
import pyspark

from s3lake.demo.process import free_port, free_ports
from s3lake_tests.kit.processes import MARK, kill_all, marked, until
from s3lake_tests.land.spark.spark_server import ROOT

HOSTS = ("127.0.0.1", "127.0.0.2")
"""Of the workers: Spark never runs a task twice on one host."""

CORES = 2
"""Of each worker, and of its executor: how many this machine has does not matter."""

_SMALL = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"


class Cluster:
    """Each worker has a directory for its executors, whose tasks import this checkout."""

    def __init__(self, home: Path) -> None:
        self.mark, self._home = str(uuid.uuid4()), home
        self._port, page = free_ports(2)
        self.master = f"spark://{HOSTS[0]}:{self._port}"
        self._master = self._started("org.apache.spark.deploy.master.Master", HOSTS[0], self._port, page)
        self._workers: dict[str, subprocess.Popen[bytes]] = {}

    def complete(self) -> None:
        """Start the workers that are missing; drivers wait for what they register."""
        until(lambda: not free_port(self._port))
        for host in HOSTS:
            if host not in self._workers:
                main, (port, page) = "org.apache.spark.deploy.worker.Worker", free_ports(2)
                has = ["--cores", str(CORES), "--memory", "2g", "--work-dir", str(self._home / str(uuid.uuid4()))]
                self._workers[host] = self._started(main, host, port, page, *has, self.master)

    def executors(self) -> list[psutil.Process]:
        """Those that run, the oldest first."""
        return sorted(self._running("CoarseGrainedExecutorBackend"), key=lambda one: one.create_time())

    def tasks(self) -> list[psutil.Process]:
        """Python workers: what was forked from the daemon of an executor."""
        forked = self._running("s3lake.land.task.worker_daemon")
        return [one for one in forked if one.ppid() in {daemon.pid for daemon in forked}]

    def kill_worker(self) -> None:
        """SIGKILL for a worker and all that it has started, as when its machine dies."""
        worker = self._workers.pop(HOSTS[1])
        family = psutil.Process(worker.pid).children(recursive=True)
        worker.kill()
        worker.wait()
        for one in family:
            if one.is_running():
                one.kill()
        psutil.wait_procs(family, timeout=30)

    def stop(self) -> None:
        """All of it."""
        kill_all(self.mark)
        for process in [*self._workers.values(), self._master]:
            process.wait()

    def _running(self, name: str) -> list[psutil.Process]:
        return [one for one in marked(self.mark) if name in " ".join(one.cmdline())]

    def _started(self, main: str, host: str, port: int, page: int, *more: str) -> "subprocess.Popen[bytes]":
        environment = {**os.environ, MARK: self.mark, "SPARK_LOCAL_IP": host, "SPARK_LOCAL_DIRS": str(self._home)}
        environment |= {"TMPDIR": str(self._home), "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": _SMALL}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), main]
        command += ["--host", host, "--port", str(port), "--webui-port", str(page), *more]
        with (self._home / "cluster.log").open("ab") as log:
            return subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, cwd=self._home, start_new_session=True
            )
