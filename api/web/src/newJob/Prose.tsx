/** A description as schemas have it: what stands in backticks is code. */
import classes from "./newJob.module.css"

export function Prose({ text }: { text: string }) {
  return text.split("`").map((part, index) =>
    index % 2 === 0 ? (
      part
    ) : (
      // Parts never move: a description is what it is.
      <code key={index} className={classes.inlineCode}>
        {part}
      </code>
    ),
  )
}
