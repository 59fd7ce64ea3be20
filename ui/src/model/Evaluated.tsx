import { useQuery } from "@tanstack/react-query";

import { Trouble } from "../parts/Trouble";
import { useWords } from "../words/words";
import { evaluationQuery } from "./queries";
import { ReportTables } from "./ReportTables";
import { Subgroups } from "./Subgroups";

/** What an evaluation and an audit of exactly this model found, where they lie beside it. */
export function Evaluated({ model }: { model: string }) {
  const { model: words, common } = useWords();
  const asked = useQuery(evaluationQuery(model));
  if (asked.isPending) return <p className="quiet">{common.loading}</p>;
  if (asked.isError) return <Trouble error={asked.error} again={() => void asked.refetch()} />;
  const { report, audit, how } = asked.data;
  return (
    <>
      <section className="card stack" aria-labelledby="evaluation-title">
        <h2 id="evaluation-title">{words.evaluation}</h2>
        {report ? <ReportTables report={report} /> : <p>{words.none}</p>}
        {how && (
          <p className="quiet small" lang="en">
            {how}
          </p>
        )}
      </section>
      {audit && <Subgroups audit={audit} />}
    </>
  );
}
