import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import type { VerificationResult } from "../api/types";
import { ErrorMessage } from "../components/ErrorMessage";
import { useWords } from "../i18n/words";
import { formatDate } from "../lib/format";
import { useStore } from "../lib/store";
import { settings } from "../settings/settings";
import { exportLog, verificationQuery } from "./queries";

/** Verifies the hash chain of the log, and exports the log. */
export function LogVerification() {
  const words = useWords().audit;
  const { language } = useStore(settings);
  const queryClient = useQueryClient();
  const verification = useQuery(verificationQuery);
  const exportMutation = useMutation({
    mutationFn: exportLog,
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ["log"] }),
  });
  return (
    <section
      className={verification.data?.whole === false ? "card verification broken" : "card verification"}
    >
      <div className="stack" role="status">
        {verification.isPending || (verification.isFetching && !verification.isError) ? (
          <p className="muted">{words.verifying}</p>
        ) : (
          verification.data && (
            <VerificationText
              verdict={verification.data}
              when={formatDate(new Date(verification.dataUpdatedAt).toISOString(), language)}
            />
          )
        )}
      </div>
      {verification.isError && <ErrorMessage error={verification.error} />}
      {exportMutation.isError && <ErrorMessage error={exportMutation.error} />}
      <div className="row">
        <button type="button" disabled={verification.isFetching} onClick={() => void verification.refetch()}>
          {words.verify}
        </button>
        <button
          type="button"
          disabled={exportMutation.isPending}
          aria-describedby="export-hint"
          onClick={() => exportMutation.mutate()}
        >
          {exportMutation.isPending ? words.exporting : words.export}
        </button>
        <span id="export-hint" className="muted small">
          {words.exportHint}
        </span>
      </div>
    </section>
  );
}

function VerificationText({ verdict, when }: { verdict: VerificationResult; when: string }) {
  const words = useWords().audit;
  return (
    <>
      <p className="row">
        <span className={verdict.whole ? "badge good" : "badge bad"}>
          <span aria-hidden="true">{verdict.whole ? "✓ " : "✕ "}</span>
          {verdict.whole ? words.intact : words.notIntact}
        </span>
        <span className="muted small">
          {words.count(verdict.events)} · {words.verifiedAt(when)}
        </span>
      </p>
      <p className="muted small">{verdict.whole ? words.intactText : words.notIntactText}</p>
      {verdict.faults.length > 0 && (
        <ul className="faults" lang="en">
          {verdict.faults.map((fault) => (
            <li key={fault}>{fault}</li>
          ))}
        </ul>
      )}
      {verdict.head && <LastHash hash={verdict.head} />}
    </>
  );
}

function LastHash({ hash }: { hash: string }) {
  const words = useWords().audit;
  const [copied, setCopied] = useState(false);
  return (
    <p className="small head-hash">
      <span className="muted">{words.lastHash}: </span>
      <span className="code">{hash}</span>{" "}
      {window.isSecureContext && (
        <button
          type="button"
          className="plain small"
          title={words.lastHashHint}
          onClick={() => void navigator.clipboard.writeText(hash).then(() => setCopied(true))}
        >
          {copied ? words.copied : words.copy}
        </button>
      )}
    </p>
  );
}
