use crate::world::{World, fresh_folder, settings, wait_for};
use bobbin_local_daytona::Confinement;

/// With bubblewrap where it works, and always without.
async fn worlds(name: &str) -> Vec<World> {
    let mut unconfined = settings(&fresh_folder(name));
    unconfined.run.confine = false;
    let confined = World::start(name).await;
    let unconfined = World::with(unconfined).await;
    assert!(
        matches!(unconfined.provider.confinement(), Confinement::None { why } if why.contains("setting"))
    );
    if confined.provider.confinement() == &Confinement::Bubblewrap {
        return vec![confined, unconfined];
    }
    eprintln!("SKIPPED the confined half: {:?}", confined.provider.confinement());
    confined.end().await;
    vec![unconfined]
}

const DAEMON: &str =
    "(setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' >/dev/null 2>&1 </dev/null &)";

/// Gone, or dead and not yet collected by the machine's first process.
fn ended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with('Z'))
}

#[tokio::test]
async fn detached_server_ends_with_its_sandbox() {
    for world in worlds("daemon").await {
        let id = world.sandbox("daemon").await;
        let before = world.provider.sandboxes()[0].pids.len();
        world.exec(&id, DAEMON).await;
        wait_for("the daemon", async || world.provider.sandboxes()[0].pids.len() > before).await;
        let pids = world.provider.sandboxes()[0].pids.clone();
        assert_eq!(world.exec(&id, "true").await["exitCode"], 0);
        world.act(&id, "stop?force=true").await;
        world.reach(&id, "stopped").await;
        assert_eq!(world.provider.sandboxes()[0].pids, Vec::<u32>::new());
        for pid in pids {
            wait_for("the end of each process", async || ended(pid)).await;
        }
        assert!(world.provider.sandboxes()[0].dir.exists(), "the directory stays");
        world.end().await;
    }
}

#[tokio::test]
async fn sandbox_inherits_no_open_files() {
    let folder = fresh_folder("open");
    std::fs::create_dir_all(&folder).unwrap();
    let open = std::fs::File::create(folder.join("held-open")).unwrap();
    rustix::io::fcntl_setfd(&open, rustix::io::FdFlags::empty()).unwrap();
    for world in worlds("descriptors").await {
        let id = world.sandbox("descriptors").await;
        let told = world.exec(&id, "ls -l /proc/self/fd").await;
        let told = told["result"].as_str().unwrap();
        assert!(told.contains("-> ") && !told.contains("held-open"), "{told}");
        world.end().await;
    }
}

#[tokio::test]
async fn confined_sandbox_writes_only_its_folder() {
    let mut worlds = worlds("writes").await;
    let world = worlds.remove(0);
    if world.provider.confinement() == &Confinement::Bubblewrap {
        let id = world.sandbox("writes").await;
        let outside = world.folder.display();
        let tried = format!(
            "touch {outside}/x 2>/dev/null; for f in /etc/x /usr/x /x; do touch $f 2>/dev/null && echo $f; done; touch mine /tmp/mine && echo ok"
        );
        assert_eq!(world.exec(&id, &tried).await["result"], "ok\n");
        assert!(!world.folder.join("x").exists(), "what is not mounted is not reached");
        assert!(world.provider.sandboxes()[0].dir.join("mine").exists());
        let other = world.sandbox("other").await;
        let neighbour = world.provider.sandboxes()[0].dir.display().to_string();
        assert_eq!(
            world.exec(&other, &format!("ls {neighbour} 2>/dev/null; true")).await["result"],
            ""
        );
        let count = world.exec(&other, "ls -d /proc/[0-9]* | wc -l").await["result"]
            .as_str()
            .unwrap()
            .trim()
            .to_owned();
        assert!(count.parse::<u32>().unwrap() < 10, "its own process space: {count}");
    }
    world.end().await;
    for rest in worlds {
        rest.end().await;
    }
}

#[tokio::test]
async fn confined_sandbox_has_no_host_privileges() {
    let mut worlds = worlds("nobody").await;
    let world = worlds.remove(0);
    if world.provider.confinement() == &Confinement::Bubblewrap {
        let id = world.sandbox("nobody").await;
        let tried = "for one in kernel/core_pattern vm/overcommit_memory fs/suid_dumpable; do (: >>/proc/sys/$one) 2>/dev/null && echo $one is open; done; [ $(id -u) = 0 ] && echo root; grep CapEff /proc/self/status | grep -q '[1-9a-f]$' && echo capable; true";
        assert_eq!(world.exec(&id, tried).await["result"], "");
        // What asks the system for its own name gets one, as a database's programs do.
        let named = "python3 -c 'import os, pwd; me = pwd.getpwuid(os.getuid()); print(me.pw_dir == os.environ[\"HOME\"])'; id -un >/dev/null && touch /dev/shm/own /run/own && echo at home";
        let told = world.exec(&id, named).await;
        if rustix::process::geteuid().is_root() {
            assert_eq!(told["result"], "True\nat home\n");
        }
        // What the provider puts there is the sandbox's own.
        let path = format!("/toolbox/{id}/files/upload-v2?path=put.txt");
        let put = world.request(reqwest::Method::POST, &path).body("one");
        assert_eq!(world.send(put).await.0, 200);
        let own = "echo two >>put.txt && rm put.txt && echo own";
        assert_eq!(world.exec(&id, own).await["result"], "own\n");
    }
    world.end().await;
    for rest in worlds {
        rest.end().await;
    }
}

#[tokio::test]
async fn sandbox_stops_with_its_first_process() {
    for world in worlds("dies").await {
        let id = world.sandbox("dies").await;
        let pid = *world.provider.sandboxes()[0].pids.iter().min().unwrap();
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        world.reach(&id, "stopped").await;
        world.act(&id, "start").await;
        assert_eq!(world.exec(&id, "echo back").await["result"], "back\n");
        world.end().await;
    }
}
