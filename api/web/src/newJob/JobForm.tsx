/** The form for a job, with what would come of it beside it. */
import { Button, Group, Title } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useEffect, useMemo, useReducer, useRef, useState } from "react"
import { flushSync } from "react-dom"

import { areEqual, valueAt, type JsonObject } from "../format/json"
import { useAction } from "../keys/actions"
import { Confirm } from "../parts/Confirm"
import { ErrorNote } from "../parts/ErrorNote"
import { useRights } from "../session/rights"
import { Differences } from "./Differences"
import { changed, draftOf, isUnreadable, SCRIPT } from "./draft"
import { FieldList } from "./FieldList"
import { arranged } from "./fields"
import { Folded } from "./Folded"
import { countSet, countWrong, goTo, inputId, type Form } from "./form"
import type { KeptDraft } from "./keptDraft"
import { MoreFields } from "./MoreFields"
import classes from "./newJob.module.css"
import { PlacementFields } from "./PlacementFields"
import { PlanPanel } from "./PlanPanel"
import { optionFields, recipeQuery } from "./queries"
import { RecipeFields } from "./RecipeFields"
import { RequestPanel } from "./RequestPanel"
import { requestOf, type Parent } from "./requests"
import { flattened, type Field } from "./schemas"
import { useDryRun } from "./useDryRun"
import { useRefusals } from "./useRefusals"
import { useSubmit } from "./useSubmit"

interface JobFormProps {
  fields: readonly Field[]
  /** The spec to begin with, and to begin anew with. */
  first: JsonObject
  parent: Parent | null
  kept: KeptDraft
}

export function JobForm({ fields: all, first, parent, kept }: JobFormProps) {
  const rights = useRights()
  const [draft, change] = useReducer(changed, null, () => kept.get() ?? draftOf(first))
  const { spec } = draft
  const form = useRef<HTMLFormElement>(null)

  const recipe = recipeOf(spec, all)
  const known = useQuery(recipeQuery(recipe))
  const options = useMemo(() => (known.data ? optionFields(known.data) : []), [known.data])
  const fields = useMemo(() => arranged(all, recipe, rights.isAdmin), [all, recipe, rights.isAdmin])
  const ids = useMemo(
    () => new Set(flattened([...Object.values(fields).flat(), ...options]).map(({ id }) => id)),
    [fields, options],
  )

  const lack = lackOf(spec, recipe, isUnreadable(draft))
  const dryRun = useDryRun(lack === null ? spec : null)
  const refusals = useRefusals(spec, dryRun, ids)
  // The service clones a job for its owner and for admins; for others its spec is submitted as one of their own.
  const cloned = parent && rights.mayChange(parent.job) ? parent : null
  const request = useMemo(() => requestOf(spec, cloned), [spec, cloned])

  // What was submitted is kept no more, also where something is drawn before the page is left.
  const isDone = useRef(false)
  useEffect(() => {
    if (isDone.current || areEqual(spec, first)) kept.forget()
    else kept.keep(spec)
  }, [kept, spec, first])

  const focusFirst = () =>
    void goTo(form.current?.querySelector("[aria-invalid=true], [data-wrong], [data-refused]") ?? null)
  const { isBusy, submit } = useSubmit(
    () => {
      isDone.current = true
      kept.forgetSent(spec)
    },
    (error) => {
      // Drawn at once, so that what is wrong can be gone to.
      flushSync(() => refusals.onFailed(error))
      focusFirst()
    },
  )

  const send = () => {
    if (isUnreadable(draft)) focusFirst()
    else void submit(request)
  }
  useAction({ id: "submit job", title: "Submit this job", section: "This page", run: send })
  const startOver = parent ? "Undo all changes" : "Start over"
  const [isAsking, setAsking] = useState(false)

  const shared: Form = { draft, errors: refusals.at, parent, change }
  return (
    <form
      ref={form}
      noValidate
      className={classes.page}
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      <div className={classes.main}>
        <section>
          <Title order={2} size="h4" mb="xs">
            Training
          </Title>
          <FieldList fields={fields.essential} form={shared}>
            <RecipeFields fields={fields.recipe} recipe={recipe} form={shared} />
          </FieldList>
        </section>
        {options.length > 0 && (
          <Folded
            key={recipe}
            title={recipe === SCRIPT ? "Program" : `Options of ${recipe}`}
            set={countSet(options, spec)}
            wrong={countWrong(options, shared)}
            opened={recipe === SCRIPT || countSet(options, spec) > 0}
          >
            <FieldList fields={options} form={shared} />
          </Folded>
        )}
        {fields.more.length > 0 && <MoreFields fields={fields.more} form={shared} />}
        <section>
          <Title order={2} size="h4" mb="xs">
            Devices
          </Title>
          <PlacementFields fields={fields.placement} form={shared} />
        </section>
        <section>
          <Title order={2} size="h4" mb="xs">
            Name and policy
          </Title>
          <FieldList fields={fields.policy} form={shared} />
        </section>
        <Folded
          title="Retries, checkpoints and more"
          set={countSet(fields.morePolicy, spec)}
          wrong={countWrong(fields.morePolicy, shared)}
          opened={countSet(fields.morePolicy, spec) > 0}
        >
          <FieldList fields={fields.morePolicy} form={shared} />
        </Folded>
      </div>
      <div className={classes.side}>
        <Group gap="xs">
          <Button type="submit" loading={isBusy}>
            Submit job
          </Button>
          <Button
            variant="default"
            disabled={draft.json === null && areEqual(spec, first)}
            onClick={() => setAsking(true)}
          >
            {startOver}
          </Button>
        </Group>
        <Confirm
          opened={isAsking}
          title={`${startOver}?`}
          verb={startOver}
          onClose={() => setAsking(false)}
          onConfirm={() => {
            setAsking(false)
            change({ kind: "replace", spec: first })
          }}
        >
          What is written here is lost.
        </Confirm>
        {refusals.failure && (
          <div data-refused tabIndex={-1}>
            <ErrorNote error={refusals.failure} onRetry={refusals.isPassing ? send : undefined} />
            {refusals.isPassing && (
              <p className={classes.count}>Sent again as it is, it becomes one job, also if it has arrived before.</p>
            )}
          </div>
        )}
        <PlanPanel
          dryRun={dryRun}
          lack={lack}
          errors={refusals.all}
          onGoTo={(field) => void goTo(document.getElementById(inputId(refusals.homeOf(field) ?? "")))}
        />
        {parent && <Differences spec={spec} parent={parent} fields={[...all, ...options]} />}
        {parent && !cloned && (
          <p className={classes.count}>
            Only who owns job {parent.job.id} and admins can clone it. This is submitted as a job of your own, and does
            not name that one as what it comes from.
          </p>
        )}
        <RequestPanel form={shared} request={request} />
      </div>
    </form>
  )
}

/** The recipe that is named, or else the one that a job without a name for it takes. */
function recipeOf(spec: JsonObject, fields: readonly Field[]): string {
  const field = flattened(fields).find(({ id }) => id === "train.recipe")
  const recipe = valueAt(spec, ["train", "recipe"]) ?? field?.default
  return typeof recipe === "string" ? recipe : ""
}

/** What the job lacks before there is anything to ask about. */
function lackOf(spec: JsonObject, recipe: string, isTornText: boolean): string | null {
  if (isTornText) return "Something that is typed cannot be read yet."
  if (recipe === SCRIPT) {
    const named = ["script", "module"].some((name) => valueAt(spec, ["train", "options", name]) !== undefined)
    return named ? null : "Name a script or a module to see where it would run."
  }
  const missing = ["model", "data"].filter((name) => valueAt(spec, ["train", name]) === undefined)
  return missing.length === 0 ? null : `Name ${missing.join(" and ")} to see where it would run.`
}
