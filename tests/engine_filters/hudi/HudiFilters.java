import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.hudi.common.bloom.BloomFilter;
import org.apache.hudi.common.bloom.BloomFilterFactory;

/** Reads and makes filters with Hudi's own classes: lines "read TYPE TEXT KEY..." and "make TYPE N FPP MAX KEY...". */
public class HudiFilters {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split("\t");
            try {
                if (words[0].equals("make")) {
                    BloomFilter filter = BloomFilterFactory.createBloomFilter(
                        Integer.parseInt(words[2]), Double.parseDouble(words[3]), Integer.parseInt(words[4]), words[1]);
                    for (int i = 5; i < words.length; i++) {
                        filter.add(words[i]);
                    }
                    System.out.println(filter.serializeToString());
                } else {
                    BloomFilter filter = BloomFilterFactory.fromString(words[2], words[1]);
                    StringBuilder found = new StringBuilder();
                    for (int i = 3; i < words.length; i++) {
                        found.append(filter.mightContain(words[i]) ? '1' : '0');
                    }
                    System.out.println(found);
                }
            } catch (Exception error) {
                System.out.println(error.getClass().getSimpleName());
            }
        }
    }
}
