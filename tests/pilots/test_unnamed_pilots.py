"""Pilots whose output is cut at its head, where it tells for whom they run."""

from __future__ import annotations

import pytest

from tests.build.pilot_files import JOB, output, queue, us
from tests.build.play import Play, record, shown
from tests.build.playbook import Playbook, playbooks
from tests.build.played import add_files

CUT = "output ?-1200 condor_start=100 factory= frontend= group="
"""An output without its head: it is not known when it began, nor for whom."""
PLAYBOOKS = f"""
The queue tells for whom a pilot ran
  {CUT}; queue 0-1210; done 2000; {CUT}; queue 0-1210; done 20000
  -> pilots 0-1200 pilot_output; groups fe.main 4800

The same where it is told later
  {CUT}; done 2000; {CUT}; done 20000; queue 0-1210; done 52000
  -> pilots 0-1200 pilot_output; groups fe.main 4800

And where it is told first
  queue 0-1210; done 2000; {CUT}; done 52000
  -> pilots 0-1200 pilot_output; groups fe.main 4800

Without the queue its summary tells
  {CUT}; summary 1300 1200; done 2000
  -> groups fe_main 4400

Without either nothing does
  {CUT}; done 2000
  -> groups - 4400

Its own output knows better that has its group
  {CUT}; queue 0-1210; done 2000; output ?-1200 condor_start=100; queue 0-1210; done 52000
  -> groups frontend.main 4800

Also where the one that has none comes later
  output ?-1200 condor_start=100; queue 0-1210; done 2000; {CUT}; queue 0-1210; done 52000
  -> groups frontend.main 4800

A collector knows better, also where the output and the queue come later again
  {CUT}; queue 0-1210; done 1300 1; ad 6000 heard=1100 job=factory#7.0; = origin collector;
  {CUT}; queue 0-1210; event started 3; done 60000
  -> groups frontend.main 4800

Where the queue may mean another schedd's pilot it tells nothing
  {CUT}; queue 0-1210; output 10-1200 schedd=other; done 2000; output 10-1200 schedd=other;
  done 60000
  -> groups - 4400, frontend.main 4760

Whether that is told before or after
  {CUT}; queue 0-1210; done 2000; output 10-1200 schedd=other; done 60000
  -> groups - 4400, frontend.main 4760

A pilot of which records of jobs told first gets its group
  none 1000 with record 1.0 100-700 startd=glidein_1_2@node;
  output ?-1200 condor_start=100 factory= frontend= group= startd=glidein_1_2; queue 0-1210;
  done 2000
  -> groups fe.main 4800

A pilot of which only files tell: the job's record has its job, though its output has no startd
  output 0-1230; done 6000;
  none 6100 with record 1.0 100-700 startd=glidein_5_6@node factory_job=factory#7.0 entry=entry
  -> pilots 0-1230 pilot_output; time goodput 600, pilot_overhead 4320

A pilot that no collector saw has the job's name for it, and so its output is found to be its own
  none 2000 with record 1.0 100-700 startd=glidein_5_6@node site=Site factory_job=factory#7.0
  entry=entry factory=factory; output 0-1230; done 6000
  -> pilots 0-1230 pilot_output; time goodput 600, pilot_overhead 4320

A collector shows the same number of another schedd: that is another pilot
  output 0-; done 600 0; ad 660 glidein@node started=300 heard=600 job=other#7.0
  -> pilots 0-, 300-

A collector shows who only jobs told of, whose startd cannot have begun after the job ended
  none 200 with record 1.0 10-100 started=none startd=glidein@node;
  ad 300 glidein@node started=160 heard=300
  -> origin collector

By more than clocks may differ
  none 200 with record 1.0 10-100 started=none startd=glidein@node;
  ad 300 glidein@node started=161 heard=300
  -> origin collector, jobs
"""


@pytest.mark.parametrize("playbook", playbooks(PLAYBOOKS))
def test_named_by_others(playbook: Playbook) -> None:
    playbook.check()


def test_a_queue_without_a_client_tells_the_user(play: Play) -> None:
    """Whose pilots they are is not in the name of the log then."""
    cut = output(None, 1200, condor_start_us=us(100))
    cut = cut._replace(name=cut.name._replace(factory="", frontend="", group=""))
    path = "/x/condor_activity_20231114.log"
    add_files(play, cut, *(of._replace(path=path) for of in queue(0, 1210)))
    assert {series.group for series in play.series()} == {"fe"}


def test_the_pilot_that_has_the_job_before_one_that_has_none(play: Play) -> None:
    """Its startd was started again at 300 s, within what clocks may differ."""
    both = [shown(started=0, heard=600, factory_job=JOB), shown(started=300, heard=600)]
    play.poll(600, both)
    told = record("1.0", 340, 500, started=None)._replace(factory_job=JOB, entry="entry")
    play.poll(660, both, records=[told])
    (run,) = play.stored.runs.values()
    assert play.stored.pilots[run.pilot].identity.factory_job == JOB


def test_of_two_pilots_with_the_same_startds_name(play: Play) -> None:
    """The one of the job that is named, though the other began later and fits as well."""
    first = shown(started=0, heard=600, factory_job="schedd#1.0")
    second = shown(started=300, heard=600, factory_job="schedd#2.0")
    play.poll(600, [first, second])
    told = record("1.0", 400, 500, started=None)._replace(factory_job="schedd#1.0", entry="entry")
    play.poll(660, [first, second], records=[told])
    (run,) = play.stored.runs.values()
    assert play.stored.pilots[run.pilot].identity.factory_job == "schedd#1.0"
