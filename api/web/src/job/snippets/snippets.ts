/** What a tab shows, as commands: of the command line, of curl, and as a program in Python. */
import type { Job } from "../../api/types"
import { Wording, type Service } from "../../format/commands"
import { pythonLiteral } from "./pythonLiteral"

export type TabPath = "" | "metrics" | "logs" | "checkpoints" | "timeline" | "spec"

interface Snippet {
  /** What it does, as a heading says it. */
  title: string
  cli: string
  curl: string
  python: string
}

export function snippetsFor(tab: TabPath, job: Job, service: Service): Snippet[] {
  const to = new Wording(service)
  const { id } = job
  switch (tab) {
    case "metrics":
      return [
        {
          title: "Its values as CSV",
          cli: to.cli(`metrics ${id} --csv > job-${id}.csv`),
          curl: to.curl(`/jobs/${id}/metrics?format=csv`, `-o job-${id}.csv`),
          python: to.python(
            `frame = client.metrics_frame(${id})  # takes pandas: pip install 'rankzero[pandas]'`,
            "print(frame)",
          ),
        },
      ]
    case "logs":
      return [
        {
          title: "Follow its output",
          cli: to.cli(`logs ${id} --follow`),
          curl: to.curl(`/events?topics=logs&jobs=${id}`, "-N"),
          python: to.python(
            `for news in client.follow(${id}, topics=["logs"]):`,
            "    for piece in news.items:",
            '        print(piece.text, end="")',
          ),
        },
        {
          title: "All of its output in a file",
          cli: to.cli(`logs ${id} > job-${id}.log`),
          curl: to.curl(`/jobs/${id}/logs/download`, `-o job-${id}.log`),
          python: to.python(`client.download_logs(${id}, "job-${id}.log")`),
        },
      ]
    case "checkpoints":
      return [
        {
          title: "List them",
          cli: to.cli(`checkpoints ${id}`),
          curl: to.curl(`/jobs/${id}/checkpoints`),
          python: to.python(
            `for checkpoint in client.checkpoints(${id}):`,
            "    print(checkpoint.id, checkpoint.step, checkpoint.best, checkpoint.values)",
          ),
        },
        {
          title: "Download the best, held against its SHA-256",
          cli: to.cli(`checkpoints ${id} --download best -o job-${id}-best.pt`),
          curl: [
            to.curl(`/jobs/${id}/checkpoints?best=true`),
            `# Its id is in the answer; sha256sum then tells whether the file is whole.`,
            to.curl(`/jobs/${id}/checkpoints/ID/file`, `-o job-${id}-best.pt`),
          ].join("\n"),
          python: to.python(`print(client.download_checkpoint(${id}, "best", "job-${id}-best.pt"))`),
        },
      ]
    case "timeline":
      return [
        {
          title: "What has happened to it",
          cli: to.cli(`events ${id}`),
          curl: to.curl(`/jobs/${id}/events`),
          python: to.python(
            `for event in client.events(${id}):`,
            "    print(event.at, event.kind, event.from_state, event.to_state, event.detail)",
          ),
        },
        {
          title: "Its attempts",
          cli: to.cli(`show ${id}`),
          curl: to.curl(`/jobs/${id}/attempts`),
          python: to.python(
            `for attempt in client.attempts(${id}):`,
            "    print(attempt.number, attempt.outcome, [placement.host for placement in attempt.placements])",
          ),
        },
      ]
    case "spec":
      return [cloning(job, to), submitting(job, to)]
    default:
      return [
        {
          title: "This job",
          cli: to.cli(`show ${id}`),
          curl: to.curl(`/jobs/${id}`),
          python: to.python(`job = client.get(${id})`, "print(job.state, job.progress)"),
        },
        {
          title: "Wait for its end",
          cli: to.cli(`logs ${id} --follow`),
          curl: to.curl(`/events?topics=jobs&jobs=${id}`, "-N"),
          python: to.python(`job = client.wait(${id})`, "print(job.state, job.failure)"),
        },
      ]
  }
}

function cloning({ id }: Job, to: Wording): Snippet {
  return {
    title: "Once more, with a change",
    cli: to.cli(`clone ${id} --set seed=1 --detach`),
    curl: to.curlWith(`/jobs/${id}/clone`, { changes: { train: { seed: 1 } } }),
    python: to.python(`job = client.clone(${id}, {"train": {"seed": 1}})`, "print(job.id)"),
  }
}

function submitting(job: Job, to: Wording): Snippet {
  const spec = specNow(job)
  const document = JSON.stringify(spec, null, 2)
  return {
    title: "The same spec as a job of its own",
    // Within quotes a shell looks for nothing in what stands here; no line of JSON is `SPEC` alone.
    cli: `${to.cli("submit - --detach")} <<'SPEC'\n${document}\nSPEC`,
    curl: to.curlWith("/jobs", spec),
    python: to.python(`job = client.submit(${pythonLiteral(spec)})`, "print(job.id)"),
  }
}

/** A job's spec with the priority and labels that it has by now, which are kept beside it. */
export function specNow({
  spec,
  priority,
  labels,
}: Pick<Job, "spec" | "priority" | "labels">): Record<string, unknown> {
  return { ...spec, priority, labels }
}
