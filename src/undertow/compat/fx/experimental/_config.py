"""Settings of symbolic shapes: nothing here reads them."""

enrich_profiler_metadata = False
print_data_dependent_errors_lifetime = 0
use_duck_shape = True
translation_validation = False
backed_size_oblivious = False
