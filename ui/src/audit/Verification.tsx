import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import type { Verdict } from "../api/types";
import { moment } from "../parts/format";
import { useStore } from "../parts/store";
import { Trouble } from "../parts/Trouble";
import { settings } from "../settings/settings";
import { useWords } from "../words/words";
import { exportLog, verdictQuery } from "./queries";

/** Whether the log is what was written, and the way to take it along. */
export function Verification() {
  const words = useWords().audit;
  const { language } = useStore(settings);
  const queries = useQueryClient();
  const asked = useQuery(verdictQuery);
  const leaving = useMutation({
    mutationFn: exportLog,
    onSuccess: () => queries.invalidateQueries({ queryKey: ["log"] }),
  });
  return (
    <section className={asked.data?.whole === false ? "card verification broken" : "card verification"}>
      <div className="stack" role="status">
        {asked.isPending || (asked.isFetching && !asked.isError) ? (
          <p className="quiet">{words.verifying}</p>
        ) : (
          asked.data && (
            <State
              verdict={asked.data}
              when={moment(new Date(asked.dataUpdatedAt).toISOString(), language)}
            />
          )
        )}
      </div>
      {asked.isError && <Trouble error={asked.error} />}
      {leaving.isError && <Trouble error={leaving.error} />}
      <div className="row">
        <button type="button" disabled={asked.isFetching} onClick={() => void asked.refetch()}>
          {words.verify}
        </button>
        <button
          type="button"
          disabled={leaving.isPending}
          aria-describedby="export-hint"
          onClick={() => leaving.mutate()}
        >
          {leaving.isPending ? words.exporting : words.export}
        </button>
        <span id="export-hint" className="quiet small">
          {words.exportHint}
        </span>
      </div>
    </section>
  );
}

function State({ verdict, when }: { verdict: Verdict; when: string }) {
  const words = useWords().audit;
  return (
    <>
      <p className="row">
        <span className={verdict.whole ? "badge good" : "badge bad"}>
          <span aria-hidden="true">{verdict.whole ? "✓ " : "✕ "}</span>
          {verdict.whole ? words.whole : words.broken}
        </span>
        <span className="quiet small">
          {words.count(verdict.events)} · {words.verifiedAt(when)}
        </span>
      </p>
      <p className="quiet small">{verdict.whole ? words.wholeText : words.brokenText}</p>
      {verdict.faults.length > 0 && (
        <ul className="faults" lang="en">
          {verdict.faults.map((fault) => (
            <li key={fault}>{fault}</li>
          ))}
        </ul>
      )}
      {verdict.head && <Head hash={verdict.head} />}
    </>
  );
}

function Head({ hash }: { hash: string }) {
  const words = useWords().audit;
  const [copied, setCopied] = useState(false);
  return (
    <p className="small head-hash">
      <span className="quiet">{words.head}: </span>
      <span className="code">{hash}</span>{" "}
      {window.isSecureContext && (
        <button
          type="button"
          className="plain small"
          title={words.headHint}
          onClick={() => void navigator.clipboard.writeText(hash).then(() => setCopied(true))}
        >
          {copied ? words.copied : words.copy}
        </button>
      )}
    </p>
  );
}
