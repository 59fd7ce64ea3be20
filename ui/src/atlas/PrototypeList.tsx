import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { prototypesQuery } from "../api/sharedQueries";
import type { Concept, Model, Prototype } from "../api/types";
import { ErrorMessage } from "../components/ErrorMessage";
import { useWords } from "../i18n/words";
import { measurementQuery } from "../model/queries";
import { PrototypeCard } from "./PrototypeCard";
import { PrototypeDialog } from "./PrototypeDialog";
import { type Filter, filterAndSort, type Order, usageOf } from "./prototypeOrder";
import { PrototypeToolbar } from "./PrototypeToolbar";

/** All prototypes of one finding. */
export function PrototypeList({ model, concept }: { model: Model; concept: Concept }) {
  const { atlas: words, common } = useWords();
  const prototypes = useQuery(prototypesQuery(model.version, concept.name));
  const measurement = useQuery(measurementQuery(model.version));
  const usage = usageOf(measurement.data, concept.name);
  const [order, setOrder] = useState<Order>("number");
  const [filter, setFilter] = useState<Filter>("all");
  const [selectedNumbers, setSelectedNumbers] = useState<ReadonlySet<number>>(new Set());
  const [openPrototype, setOpenPrototype] = useState<Prototype | null>(null);
  const toggle = (number: number) =>
    setSelectedNumbers((current) =>
      current.has(number)
        ? new Set([...current].filter((selected) => selected !== number))
        : new Set([...current, number]),
    );
  if (prototypes.isError)
    return <ErrorMessage error={prototypes.error} onRetry={() => void prototypes.refetch()} />;
  if (prototypes.isPending) return <p className="muted centred">{common.loading}</p>;
  const kept = prototypes.data.filter((prototype) => prototype.kept).length;
  return (
    <>
      <div className="concept-head">
        <h2 lang="en">{concept.title}</h2>
        <span className="muted">{words.counts(kept, prototypes.data.length - kept)}</span>
        <p lang="en">{concept.description}</p>
      </div>
      <PrototypeToolbar
        model={model}
        concept={concept.name}
        prototypes={prototypes.data}
        selected={selectedNumbers}
        onClearSelection={() => setSelectedNumbers(new Set())}
        order={order}
        onOrder={setOrder}
        filter={filter}
        onFilter={setFilter}
        isMeasured={usage !== null}
      />
      <ul className="prototypes" aria-label={words.list}>
        {filterAndSort(prototypes.data, order, filter, usage).map((prototype) => (
          <PrototypeCard
            key={prototype.number}
            model={model.version}
            prototype={prototype}
            usage={usage}
            isSelected={selectedNumbers.has(prototype.number)}
            onSelect={() => toggle(prototype.number)}
            onOpen={() => setOpenPrototype(prototype)}
          />
        ))}
      </ul>
      {openPrototype && (
        <PrototypeDialog
          model={model.version}
          prototype={openPrototype}
          usage={usage}
          onClose={() => setOpenPrototype(null)}
        />
      )}
    </>
  );
}
